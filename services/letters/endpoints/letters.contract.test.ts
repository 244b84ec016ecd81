import { beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser, tokenOf, type OwnUser } from '../../../test/support/accounts.ts';
import { newLetter } from '../../../test/support/letters.ts';
import { database } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

// services/letters tests the states of a letter in detail; these tests cover the gateway's view.

const { gateway } = stack();
const stale = { 'If-Match': '"stale"' };

let owner: OwnUser;
let token: string;
beforeAll(async () => {
  owner = await newUser();
  ({ token } = owner);
});

const letter = (more: { state?: contract.LetterState } = {}) => newLetter({ userId: owner.id, ...more });

/** Makes the request with this key look as if it were in progress. */
const forgetReply = (key: string) =>
  database().query('UPDATE letters.idempotency_key SET reply = NULL WHERE key = $1', [key]);

/** Reads the letter as an admin, who has letters:write. */
async function read(id: number) {
  const answer = await call(gateway, contract.readLetter, {
    params: { id },
    token: await tokenOf(gateway, 'admin'),
  });
  return { letter: answer.body!, etag: answer.headers.get('etag')! };
}

const skipExample = {
  body: { letter_id: 9_007_199_254_740_991, webform_id: 2, skipped: true },
  isMissing: true,
  invalid: {
    fields: {
      letter_id: [0, '1'],
      webform_id: [1.5],
      skipped: ['yes'],
      reason: ['x'.repeat(501), 'nul\0'],
      user_id: [1],
    },
  },
};
describeEndpoint(contract.updateLetterSkippedWebform, skipExample, ({ ask }) => {
  const validBody = async (more: { webform_id?: number } = {}) => ({
    letter_id: await letter(),
    webform_id: 2,
    skipped: true,
    ...more,
  });

  test('skips a webform and undoes the skip', async () => {
    const body = { ...(await validBody()), reason: 'Does not apply.' };
    const done = await ask({ token, body });
    expect(done).toMatchObject({ status: 200, body: { success: true, letter: { version: 2 } } });
    const [first, second, third] = done.body!.letter.webforms;
    expect([first, third]).toMatchObject([{ skipped: false }, { skipped: false }]);
    expect(second).toMatchObject({ skipped: true, reason: 'Does not apply.' });
    expect(Math.abs(Date.parse(second!.skipped_at!) - Date.now())).toBeLessThan(60_000);
    expect(await read(body.letter_id)).toEqual({ letter: done.body!.letter, etag: done.headers.get('etag') });
    const back = await ask({ token, body: { ...body, skipped: false } });
    expect(back.body!.letter.webforms[1]).toMatchObject({ skipped: false, skipped_at: null, reason: null });
  });

  test('refuses closed letters, old ETags, and webforms that are missing or required', async () => {
    const closed = { ...(await validBody()), letter_id: await letter({ state: 'sent' }) };
    expect((await ask({ token, body: closed })).error).toMatchObject({
      error: 'letter_closed',
      details: [{ path: 'state', message: 'sent' }],
    });
    const { error } = await ask({ token, body: await validBody(), headers: stale });
    expect(error?.error).toBe('precondition_failed');
    expect((await ask({ token, body: await validBody({ webform_id: 99 }) })).error).toMatchObject({
      error: 'validation_failed',
      details: [{ path: 'body.webform_id' }],
    });
    const required = await ask({ token, body: await validBody({ webform_id: 1 }) });
    expect(required.error?.error).toBe('webform_required');
  });

  test('repeats the reply for the same Idempotency-Key; returns 422 for another request', async () => {
    const body = await validBody();
    const headers = { 'Idempotency-Key': 'again', 'If-Match': (await read(body.letter_id)).etag };
    const first = await ask({ token, body, headers });
    expect(await ask({ token, body, headers })).toMatchObject({ status: 200, body: first.body });
    const other = await ask({ token, body: { ...body, skipped: false }, headers });
    expect(other.error?.error).toBe('idempotency_key_reused');
  });

  test('returns 409 while the first request with the key is in progress', async () => {
    const body = await validBody();
    const headers = { 'Idempotency-Key': `skip-${owner.id}` };
    await ask({ token, body, headers });
    await forgetReply(headers['Idempotency-Key']);
    expect((await ask({ token, body, headers })).error?.error).toBe('idempotency_key_in_use');
  });
});

const createLetterExample = {
  body: { user_id: 9_007_199_254_740_991, title: 'Before your visit', webforms: [] },
  invalid: {
    fields: {
      // The last user does not exist.
      user_id: ['1', undefined, 9_007_199_254_740_991],
      title: ['', ' ', 'x'.repeat(201), 'A\u001b[31m letter'],
      webforms: [
        undefined,
        [{ webform_id: 0, required: true }],
        [{ webform_id: 1 }],
        [{ webform_id: 1, required: true, skipped: true }],
        [1, 1].map((webform_id) => ({ webform_id, required: true })),
        Array.from({ length: 101 }, (_, index) => ({ webform_id: index + 1, required: true })),
      ],
      state: ['open'],
    },
  },
};
describeEndpoint(contract.createLetter, createLetterExample, ({ ask }) => {
  const validBody = () => ({
    user_id: owner.id,
    title: 'Before your visit',
    webforms: [
      { webform_id: 12, required: true },
      { webform_id: 13, required: false },
    ],
  });

  test('creates a draft that its user can read, and whose history names its author', async () => {
    const { webforms, ...rest } = validBody();
    const made = await ask({ body: { ...rest, webforms: webforms.toReversed() } });
    expect(made).toMatchObject({
      status: 201,
      body: { user_id: owner.id, title: 'Before your visit', state: 'draft', version: 1, webforms },
    });
    const { id } = made.body!;
    expect(await read(id)).toEqual({ letter: made.body, etag: made.headers.get('etag') });
    expect((await call(gateway, contract.readLetter, { token, params: { id } })).body).toEqual(made.body);
    const history = await call(gateway, contract.readLetterHistory, { token, params: { id } });
    const actor = expect.stringMatching(/^user:\d+$/) as unknown as string;
    expect(history.body!.items).toMatchObject([{ event: 'created', actor }]);
  });

  test('creates one letter for one Idempotency-Key, also for concurrent requests', async () => {
    const headers = { 'Idempotency-Key': `create-${owner.id}` };
    const body = validBody();
    const title = `Once ${owner.id}`;
    const all = Array.from({ length: 6 }, () => ask({ body: { ...body, title }, headers }));
    const codes = (await Promise.all(all)).map(({ status, error }) => error?.error ?? status);
    expect(codes.filter((code) => code !== 201 && code !== 'idempotency_key_in_use')).toEqual([]);
    const again = await until('the first request has ended', async () => {
      const answer = await ask({ body: { ...body, title }, headers });
      return answer.status === 201 && answer;
    });
    const { body: own } = await call(gateway, contract.listLetters, { token });
    expect(own!.items.filter((one) => one.title === title)).toEqual([again.body]);
    expect((await ask({ body, headers })).error?.error).toBe('idempotency_key_reused');
  });

  test('returns 409 while the first request with the key is in progress', async () => {
    const headers = { 'Idempotency-Key': `slow-${owner.id}` };
    const body = validBody();
    await ask({ body, headers });
    await forgetReply(headers['Idempotency-Key']);
    expect((await ask({ body, headers })).error?.error).toBe('idempotency_key_in_use');
  });
});

const queries = ['state=lost', 'state=', 'user_id=1'];
describeEndpoint(contract.listLetters, { invalid: { queries } }, ({ ask }) => {
  test('lists the demo letters: at least one in each state', async () => {
    const { body } = await ask({ query: { cursor: 6 } });
    expect(body!.items.map(({ id, state }) => [id, state])).toEqual([
      [5, 'open'],
      [4, 'closed'],
      [3, 'sent'],
      [2, 'draft'],
      [1, 'open'],
    ]);
    expect(body!.items[4]!.webforms).toMatchObject([
      { webform_id: 1, required: true },
      { webform_id: 2, required: false },
      { webform_id: 3, required: false },
    ]);
    const open = await ask({ query: { state: 'open', limit: 1, cursor: 6 } });
    expect(open.body).toEqual({ items: [body!.items[0]], next_cursor: '5' });
  });
});

describeEndpoint(contract.readLetter, {}, ({ ask }) => {
  test("returns the user's own letter; 304 for the current ETag", async () => {
    const id = await letter();
    const own = await ask({ token, params: { id } });
    expect(own).toMatchObject({ status: 200, body: { id, user_id: owner.id, state: 'open', version: 1 } });
    const etag = own.headers.get('etag')!;
    const known = await ask({ token, params: { id }, headers: { 'If-None-Match': etag } });
    expect({ status: known.status, etag: known.headers.get('etag') }).toEqual({ status: 304, etag });
    expect(known.headers.get('cache-control')).toBe('private, no-cache');
  });
});

describeEndpoint(contract.readLetterHistory, {}, ({ ask }) => {
  test('lists the changes, newest first, with their actors', async () => {
    const id = await letter();
    const body = { letter_id: id, webform_id: 2, skipped: true, reason: 'No.' };
    await call(gateway, contract.updateLetterSkippedWebform, { token, body });
    const admin = await tokenOf(gateway, 'admin');
    const change = { params: { id }, body: { state: 'sent' as const }, headers: { 'If-Match': '*' } };
    await call(gateway, contract.updateLetter, { token: admin, ...change });
    const { id: adminId } = (await call(gateway, contract.me, { token: admin })).body!;
    const { items } = (await ask({ token, params: { id } })).body!;
    expect(items).toMatchObject([
      { event: 'state_changed', actor: `user:${adminId}`, details: { from: 'open', to: 'sent' } },
      { event: 'webform_skipped', actor: `user:${owner.id}`, details: { webform_id: 2, reason: 'No.' } },
      { event: 'created', actor: 'command' },
    ]);
  });
});

const updateLetterExample = {
  body: { title: 'New' },
  invalid: { fields: { title: ['', 'x'.repeat(201)], state: ['lost', null], version: [1] }, bodies: [{}] },
};
describeEndpoint(contract.updateLetter, updateLetterExample, ({ ask, send }) => {
  test('changes title and state in one version', async () => {
    const id = await letter();
    const headers = { 'If-Match': (await read(id)).etag };
    const answer = await ask({ params: { id }, headers, body: { title: 'New', state: 'sent' } });
    expect(answer).toMatchObject({ status: 200, body: { title: 'New', state: 'sent', version: 2 } });
    expect(await read(id)).toEqual({ letter: answer.body, etag: answer.headers.get('etag') });
  });

  test('returns 428 without If-Match, 412 for an old ETag, 404 for an unknown letter', async () => {
    const change = { params: { id: await letter() }, body: { state: 'sent' as const } };
    expect((await ask(change)).error).toMatchObject({ error: 'precondition_required', code: 428 });
    expect((await ask({ ...change, headers: stale })).error?.error).toBe('precondition_failed');
    const { error } = await send({ body: '{"title":"New"}', headers: { 'If-Match': '*' } });
    expect(error?.error).toBe('not_found');
  });

  test('returns 409 for an invalid state change and for the title of a sent letter', async () => {
    const params = { id: await letter({ state: 'sent' }) };
    const headers = { 'If-Match': '*' };
    expect((await ask({ params, body: { state: 'open' }, headers })).error).toMatchObject({
      error: 'state_change_not_allowed',
      details: [{ message: 'sent' }, { message: 'open' }],
    });
    expect((await ask({ params, body: { title: 'New' }, headers })).error).toMatchObject({
      error: 'letter_closed',
      details: [{ path: 'state', message: 'sent' }],
    });
  });
});
