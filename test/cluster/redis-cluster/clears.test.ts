import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../../support/accounts.ts';
import { clear } from '../../support/platform.ts';
import { freshId, remove, save } from '../../support/records.ts';
import { stack } from '../../support/stack.ts';
import { keysOf, redisCli } from '../redis-cli.ts';
import { useStack } from '../use-stack.ts';
import { primaries } from './nodes.ts';

useStack();

/** Returns each primary's number of keys that match the pattern. */
const counts = async (pattern: string): Promise<number[]> => {
  const keys = (await primaries()).map(({ container }) => keysOf(container, pattern));
  return (await Promise.all(keys)).map(({ length }) => length);
};

/** Writes keys as another program would, enough for each primary to hold some. */
async function writeUnmanaged(model: string, id: number, count: number): Promise<void> {
  const { container } = (await primaries())[0]!;
  for (let index = 0; index < count; index += 1)
    await redisCli(container, '-c', 'set', `${model}:${id}:${index}`, "another program's");
}

async function readViews(model: contract.Model, id: number): Promise<void> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'user');
  for (const view of contract.views) {
    const query = { view };
    const { status } = await call(gateway, contract.readContent, { params: { model, id }, query, token });
    expect(status).toBe(200);
  }
}

async function clearPattern(model: contract.Model): Promise<number> {
  const { gateway } = stack();
  const body = { pattern: `${model}:*` } as const;
  const token = await tokenOf(gateway, 'machine');
  const answer = await call(gateway, contract.clearPattern, { body, token });
  if (answer.error) throw new Error(answer.error.message);
  return answer.body.keys_deleted;
}

test("clearing a record deletes its unmanaged keys on every primary and no other record's keys", async () => {
  const id = freshId();
  await save('pathway', id, 'Cached');
  await readViews('pathway', id);
  await writeUnmanaged('pathway', id, 20);
  await writeUnmanaged('pathway', id * 10 + 1, 1);
  for (const count of await counts(`pathway:${id}:*`)) expect(count).toBeGreaterThan(0);
  expect(await clear('pathway', id)).toBe(22);
  expect(await counts(`pathway:${id}`)).toEqual([0, 0, 0]);
  expect(await counts(`pathway:${id}:*`)).toEqual([0, 0, 0]);
  expect((await counts(`pathway:${id * 10 + 1}:*`)).toSorted()).toEqual([0, 0, 1]);
  await remove('pathway', id);
});

test('clearing a model deletes its keys on every primary', async () => {
  const ids = Array.from({ length: 8 }, freshId);
  await clearPattern('pathway');
  for (const id of ids) {
    await save('pathway', id, 'Cached');
    await readViews('pathway', id);
  }
  await writeUnmanaged('pathway', ids[0]!, 20);
  for (const count of await counts('pathway:*')) expect(count).toBeGreaterThan(0);
  expect(await clearPattern('pathway')).toBe(2 * ids.length + 20);
  expect(await counts('pathway:*')).toEqual([0, 0, 0]);
  for (const id of ids) await remove('pathway', id);
});
