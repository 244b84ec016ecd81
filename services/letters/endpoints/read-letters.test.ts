import { describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { useLetters } from '../testing/letters.ts';

const letters = useLetters();

const list = (token: string, query: Record<string, string | number> = {}) =>
  call(letters.origin, contract.listLetters, { token, query });
const read = (id: number, token: string, headers: Record<string, string> = {}) =>
  call(letters.origin, contract.readLetter, { params: { id }, token, headers });
const history = (id: number, token: string, query: Record<string, string | number> = {}) =>
  call(letters.origin, contract.readLetterHistory, { params: { id }, token, query });

describe('by its id', () => {
  test('returns own letters, with letters:write all; otherwise the same 404 as for an unknown letter', async () => {
    const id = await letters.letter();
    const own = await read(id, 'user.1');
    expect(own).toMatchObject({ status: 200, body: { id, user_id: 1, title: 'A letter', version: 1 } });
    expect(own.headers.get('cache-control')).toBe('private, no-cache');
    expect((await read(id, 'staff.9')).body).toEqual(own.body);
    expect((await history(id, 'staff.9')).body!.items).toHaveLength(1);
    for (const ask of [read, history]) {
      const [theirs, none] = [await ask(id, 'user.2'), await ask(9_000_000, 'user.2')];
      const same = (answer: typeof theirs) =>
        JSON.stringify({ ...answer.error, request_id: '' }).replace(/letter \d+/gi, '');
      expect(theirs.error?.error).toBe('not_found');
      expect(same(theirs)).toBe(same(none));
    }
  });

  test('while auth is unavailable, logs who of the staff read whose letter, and not what its user reads', async () => {
    const id = await letters.letter();
    const lines = () => letters.log.filter((line) => line.includes('staff read') && line.includes(`:${id},`));
    await read(id, 'user.1');
    expect(lines()).toEqual([]);
    await read(id, 'staff.9');
    await history(id, 'staff.9');
    expect(lines()).toHaveLength(2);
    const logged = { requested_by: 'user:9', letter_id: id, user_id: 1, audited: false };
    expect(JSON.parse(lines()[0]!)).toMatchObject(logged);
  });

  test('returns the history newest first, in pages', async () => {
    const id = await letters.letter();
    for (const skipped of [true, false]) await letters.skip(id, { skipped });
    const all = (await history(id, 'user.1')).body!;
    expect(all.items.map(({ event }) => event)).toEqual(['webform_unskipped', 'webform_skipped', 'created']);
    const { letter } = await letters.read(id);
    expect(all.items[0]!.at).toBe(letter.updated_at);
    const first = (await history(id, 'user.1', { limit: 2 })).body!;
    expect(first).toEqual({ items: all.items.slice(0, 2), next_cursor: String(all.items[1]!.id) });
    const second = (await history(id, 'user.1', { limit: 2, cursor: first.next_cursor! })).body!;
    expect(second).toEqual({ items: all.items.slice(2), next_cursor: null });
  });
});

test('lists own letters only, also for staff, newest first, by state, in pages', async () => {
  const states = ['draft', 'open', 'open', 'sent'] as const;
  const ids: number[] = [];
  for (const state of states) ids.unshift(await letters.letter({ userId: 5, state }));
  await letters.letter({ userId: 6 });
  const all = (await list('user.5')).body!;
  expect(all.items.map(({ id }) => id)).toEqual(ids);
  expect(all.items[0]).toEqual((await letters.read(ids[0]!, 'user.5')).letter);
  const open = (await list('staff.5', { state: 'open' })).body!;
  expect(open).toEqual({ items: all.items.slice(1, 3), next_cursor: null });
  const first = (await list('user.5', { limit: 1, state: 'open' })).body!;
  expect(first).toEqual({ items: [all.items[1]], next_cursor: String(ids[1]) });
  const second = (await list('user.5', { limit: 1, state: 'open', cursor: first.next_cursor! })).body!;
  expect(second).toEqual({ items: [all.items[2]], next_cursor: null });
  expect((await list('staff.7')).body).toEqual({ items: [], next_cursor: null });
});
