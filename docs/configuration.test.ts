import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { configurationTable } from './configuration.ts';

/** prettier pads the cells of tables. */
const unpadded = (text: string) => text.replace(/ *\| */g, '|').replace(/-{2,}/g, '---');

test('the README lists every setting as the schemas have it', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const table = /<!-- configuration -->\n+([^]*?)\n+<!-- \/configuration -->/.exec(readme)?.[1];
  expect(unpadded(table ?? '')).toBe(unpadded(configurationTable()));
});
