import { expect, test } from '@jest/globals';
import { html } from './html.ts';

test('what stands in text or in an attribute cannot leave it', () => {
  const evil = `"><script>alert('x')</script>&`;
  expect(html`<p title="${evil}">${evil}</p>`.text).not.toContain('<script>');
  expect(html`${'&<>"\''}`.text).toBe('&amp;&lt;&gt;&quot;&#39;');
  expect(html`${['<b>', html`<i>${'<'}</i>`]}`.text).toBe('&lt;b&gt;<i>&lt;</i>');
});

test('HTML is not escaped again; nothing is nothing, and 0 is something', () => {
  expect(html`${[1, 0].map((n) => html`<li>${n}</li>`)}`.text).toBe('<li>1</li><li>0</li>');
  expect(html`a${null}${undefined}${false}b`.text).toBe('ab');
});
