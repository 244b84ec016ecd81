import { expect, test } from '@jest/globals';
import { page } from './page.ts';

const ids = [5, 4, 3];
const read = async (limit: number) => ids.slice(0, limit).map((id) => ({ id }));

test.each([
  [2, [5, 4], '4'],
  [3, [5, 4, 3], null],
  [4, [5, 4, 3], null],
])('a page of at most %s items names the next page only if there is one', async (limit, items, next) => {
  expect(await page(limit, read, ({ id }) => id)).toEqual({ items, next_cursor: next });
});
