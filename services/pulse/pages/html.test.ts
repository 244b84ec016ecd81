import { expect, test } from '@jest/globals';
import { html } from './html.ts';

test('escapes values in text and attributes', () => {
  const evil = `"><script>alert('x')</script>&`;
  expect(html`<p title="${evil}">${evil}</p>`.text).not.toContain('<script>');
  expect(html`${'&<>"\''}`.text).toBe('&#38;&#60;&#62;&#34;&#39;');
  expect(html`${['<b>', html`<i>${'<'}</i>`]}`.text).toBe('&#60;b&#62;<i>&#60;</i>');
});

test('does not escape Html again, omits missing values and shows 0', () => {
  expect(html`${[1, 0].map((n) => html`<li>${n}</li>`)}`.text).toBe('<li>1</li><li>0</li>');
  expect(html`a${null}${undefined}${false}b`.text).toBe('ab');
});
