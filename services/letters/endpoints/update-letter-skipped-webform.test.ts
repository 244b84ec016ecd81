import { describe, expect, test } from '@jest/globals';
import { untilBlocked } from '../../../test/support/locks.ts';
import { createLetterStore } from '../letter-store.ts';
import { useLetters } from '../testing/letters.ts';

const letters = useLetters();

const stale = { 'If-Match': '"stale"' };

describe('skipping a webform', () => {
  test('unskipping restores the webform; only the history shows the change', async () => {
    const id = await letters.letter();
    const before = (await letters.read(id)).letter;
    await letters.skip(id, { reason: 'No.' });
    const back = await letters.skip(id, { skipped: false, reason: 'After all.' });
    expect(back.body!.letter).toMatchObject({ webforms: before.webforms, version: 3 });
    expect((await letters.history(id))[0]).toEqual({
      event: 'webform_unskipped',
      actor: 'user:1',
      details: { webform_id: 2, reason: 'After all.' },
    });
  });

  test('returns 429 after 1,000 entries of the history in 24 hours', async () => {
    const [full, other] = [await letters.letter(), await letters.letter()];
    const add = (count: number, age: string) =>
      letters.database.query(
        'add_history',
        `INSERT INTO letters.history (letter_id, at, actor, event, details)
         SELECT $1, now() - $3::interval, 'user:1', 'webform_skipped', '{}' FROM generate_series(1, $2)`,
        [full, count, age],
      );
    await add(2_000, '25 hours');
    await add(998, '1 hour');
    expect((await letters.skip(full)).status).toBe(200);
    expect((await letters.skip(full, { skipped: false })).status).toBe(200);
    const refused = await letters.skip(full);
    expect(refused).toMatchObject({ status: 429, error: { error: 'rate_limited' } });
    const seconds = Number(refused.headers.get('retry-after'));
    expect([seconds > 22 * 3_600, seconds <= 23 * 3_600]).toEqual([true, true]);
    expect((await letters.read(full)).letter.webforms[1]!.skipped).toBe(false);
    expect((await letters.skip(other)).status).toBe(200);
  });

  test.each([
    ['skipping a skipped webform with the same reason', { reason: 'No.' }],
    ['skipping a skipped webform without a reason', {}],
    ['unskipping a webform that is not skipped', { webform_id: 3, skipped: false, reason: 'x' }],
    ['unskipping a required webform', { webform_id: 1, skipped: false }],
  ])('%s changes nothing', async (_, change) => {
    const id = await letters.letter();
    await letters.skip(id, { reason: 'No.' });
    const { letter, etag } = await letters.read(id);
    const history = await letters.history(id);
    const answer = await letters.skip(id, change);
    expect(answer).toMatchObject({ status: 200, body: { letter } });
    expect(answer.headers.get('etag')).toBe(etag);
    expect(await letters.history(id)).toEqual(history);
  });

  test('another reason changes the reason only; an empty reason removes it', async () => {
    const id = await letters.letter();
    const first = await letters.skip(id, { reason: 'No.' });
    const { skipped_at } = first.body!.letter.webforms[1]!;
    const other = await letters.skip(id, { reason: 'Never.' });
    expect(other.body!.letter.version).toBe(3);
    expect(other.body!.letter.webforms[1]).toMatchObject({ skipped: true, skipped_at, reason: 'Never.' });
    const none = await letters.skip(id, { reason: '' });
    expect(none.body!.letter.webforms[1]).toMatchObject({ skipped: true, skipped_at, reason: null });
    const changes = (await letters.history(id)).slice(0, 2);
    expect(changes.map(({ event, details }) => ({ event, ...details }))).toEqual([
      { event: 'skip_reason_changed', webform_id: 2, from: 'Never.', to: null },
      { event: 'skip_reason_changed', webform_id: 2, from: 'No.', to: 'Never.' },
    ]);
  });
});

describe('a refused request changes nothing', () => {
  test("returns the same 404 for another user's letter, also to staff, and for an unknown letter", async () => {
    const id = await letters.letter();
    for (const [letter_id, token] of [
      [id, 'user.2'],
      [id, 'staff.9'],
      [9_000_000, 'user.2'],
    ] as const) {
      const { error } = await letters.skip(letter_id, { webform_id: 99 }, stale, token);
      expect(error).toMatchObject({ error: 'not_found', message: `Letter ${letter_id} was not found.` });
    }
    expect(await letters.history(id)).toHaveLength(1);
  });

  test.each(['sent', 'closed'] as const)(
    'returns 409 for a letter that is %s before any other error',
    async (state) => {
      const id = await letters.letter({ state });
      for (const webform_id of [1, 2, 99]) {
        const { error } = await letters.skip(id, { webform_id }, stale);
        const details = [{ path: 'state', message: state }];
        expect(error).toMatchObject({ error: 'letter_closed', code: 409, details });
      }
      expect((await letters.read(id)).letter.version).toBe(1);
    },
  );

  test('returns 412 for an outdated ETag before 422; accepts the current ETag and *', async () => {
    const id = await letters.letter();
    const { etag } = await letters.read(id);
    await letters.skip(id, {}, { 'If-Match': etag });
    const { letter } = await letters.read(id);
    expect(letter.version).toBe(2);
    for (const webform_id of [1, 2, 3, 99]) {
      const { error } = await letters.skip(id, { webform_id }, { 'If-Match': etag });
      expect(error).toMatchObject({ error: 'precondition_failed', code: 412 });
    }
    expect((await letters.read(id)).letter).toEqual(letter);
    expect(await letters.skip(id, { webform_id: 3 }, { 'If-Match': '*' })).toMatchObject({ status: 200 });
  });
});

test.each([
  ['another skip', { skipped: false }, {}],
  ['another reason', { reason: 'No.' }, {}],
  ['another If-Match', {}, { 'If-Match': '*' }],
])('returns 422 for %s with the same Idempotency-Key', async (name, change, headers) => {
  const id = await letters.letter();
  const key = { 'Idempotency-Key': name };
  await letters.skip(id, {}, key);
  const { error } = await letters.skip(id, change, { ...key, ...headers });
  expect(error).toMatchObject({ error: 'idempotency_key_reused', code: 422 });
  expect((await letters.read(id)).letter.version).toBe(2);
});

describe('concurrent requests', () => {
  const ids = Array.from({ length: 20 }, (_, n) => n + 1);
  const webforms = ids.map((webform_id) => ({ webform_id, required: false }));
  const skipAll = (id: number, headers?: Record<string, string>) =>
    Promise.all(ids.map((webform_id) => letters.skip(id, { webform_id }, headers)));

  test('20 concurrent skips make 20 versions, each of which contains the earlier skips', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await letters.letter({ webforms });
      const answers = await skipAll(id);
      const versions = answers.map(({ body }) => body!.letter.version);
      expect(versions.toSorted((a, b) => a - b)).toEqual(ids.map((n) => n + 1));
      for (const { body } of answers) {
        const skipped = body!.letter.webforms.filter((webform) => webform.skipped);
        expect(skipped).toHaveLength(body!.letter.version - 1);
      }
      expect((await letters.read(id)).letter.version).toBe(21);
      expect(await letters.history(id)).toHaveLength(21);
    }
  });

  test('of 20 requests with the same If-Match one succeeds, the others get 412', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await letters.letter({ webforms });
      const answers = await skipAll(id, { 'If-Match': (await letters.read(id)).etag });
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
      expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 412)]);
      expect((await letters.read(id)).letter.version).toBe(2);
    }
  });

  test('a request whose connection broke during the commit is not carried out again', async () => {
    const id = await letters.letter();
    const once = { 'Idempotency-Key': 'once', 'If-Match': (await letters.read(id)).etag };
    letters.breakAfterNextCommit();
    expect((await letters.skip(id, {}, once)).status).toBe(500);
    expect((await letters.skip(id, { skipped: false })).status).toBe(200);
    expect((await letters.skip(id, {}, once)).status).toBe(200);
    expect((await letters.read(id)).letter.version).toBe(3);
  });

  test('a request that waited for the lock gets a later time than the change before it', async () => {
    const id = await letters.letter();
    const { database } = letters;
    const [waited, before] = await database.transaction(async (query) => {
      await createLetterStore(query).lock(id, 'any');
      const waiting = letters.skip(id);
      await untilBlocked(database);
      // A change that began after the waiting change and ended before it.
      const change =
        'UPDATE letters.letter SET updated_at = clock_timestamp() WHERE id = $1 RETURNING updated_at';
      const { rows } = await query<{ updated_at: Date }>('test', change, [id]);
      return [waiting, rows[0]!.updated_at] as const;
    });
    const after = Date.parse((await waited).body!.letter.updated_at);
    expect(after).toBeGreaterThanOrEqual(before.getTime());
  });
});
