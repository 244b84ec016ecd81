import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser, tokenOf, type OwnUser } from '../support/accounts.ts';
import { newLetter } from '../support/letters.ts';
import { closeRecords, database } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { describeEndpoint } from './describe-endpoint.ts';

const { gateway } = stack();
const path = '/api/letters';
const nobodys = `${path}/9007199254740991`;
const skipPath = '/api/updateLetterSkippedWebform';
const stale = { 'If-Match': '"stale"' };

let owner: OwnUser;
let token: string;
beforeAll(async () => {
  owner = await newUser();
  ({ token } = owner);
});
afterAll(closeRecords);

const letter = (more: { state?: contract.LetterState; webforms?: number[] } = {}) =>
  newLetter({ userId: owner.id, ...more });

/** The letter as an admin, who has letters:write, reads it. */
async function read(id: number) {
  const answer = await call(gateway, contract.readLetter, {
    params: { id },
    token: await tokenOf(gateway, 'admin'),
  });
  return { letter: answer.body!, etag: answer.headers.get('etag')! };
}

async function eventsOf(id: number): Promise<string[]> {
  const { body } = await call(gateway, contract.readLetterHistory, { params: { id }, token });
  return body!.items.map(({ event }) => event);
}

describeEndpoint(
  contract.updateLetterSkippedWebform,
  {
    path: skipPath,
    as: 'user',
    body: { letter_id: 9_007_199_254_740_991, webform_id: 2, skipped: true },
    isMissing: true,
    invalid: {
      fields: [
        { letter_id: 0 },
        { letter_id: '1' },
        { webform_id: 1.5 },
        { skipped: 'yes' },
        { reason: 'x'.repeat(501) },
        { reason: 'nul\0' },
        { user_id: 1 },
      ],
    },
  },
  ({ ask }) => {
    const wish = async (more: { webform_id?: number; skipped?: boolean; reason?: string } = {}) => ({
      letter_id: await letter(),
      webform_id: 2,
      skipped: true,
      ...more,
    });

    test('skipped, and taken back', async () => {
      const body = await wish({ reason: 'Does not apply.' });
      const done = await ask({ token, body });
      expect(done).toMatchObject({ status: 200, body: { success: true, letter: { version: 2 } } });
      expect(done.body!.letter.webforms[1]).toMatchObject({ skipped: true, reason: 'Does not apply.' });
      expect(await read(body.letter_id)).toEqual({
        letter: done.body!.letter,
        etag: done.headers.get('etag'),
      });
      const back = await ask({ token, body: { ...body, skipped: false } });
      expect(back.body!.letter.webforms[1]).toEqual({
        webform_id: 2,
        required: false,
        skipped: false,
        skipped_at: null,
        reason: null,
      });
      expect(await eventsOf(body.letter_id)).toEqual(['webform_unskipped', 'webform_skipped', 'created']);
    });

    test.each(['sent', 'closed'] as const)('a letter that is %s: 409 names its state', async (state) => {
      const body = { letter_id: await letter({ state }), webform_id: 99, skipped: true };
      expect((await ask({ token, body, headers: stale })).error).toMatchObject({
        error: 'letter_closed',
        details: [{ path: 'state', message: state }],
      });
    });

    test('with If-Match: 412 when it is old', async () => {
      const body = await wish();
      const { etag } = await read(body.letter_id);
      expect((await ask({ token, body, headers: stale })).error?.error).toBe('precondition_failed');
      expect((await ask({ token, body, headers: { 'If-Match': etag } })).status).toBe(200);
      expect((await ask({ token, body, headers: { 'If-Match': etag } })).error?.code).toBe(412);
    });

    test('a webform it does not have, and one that is required: 422', async () => {
      expect((await ask({ token, body: await wish({ webform_id: 99 }) })).error).toMatchObject({
        error: 'validation_failed',
        details: [{ path: 'body.webform_id' }],
      });
      const { error } = await ask({ token, body: await wish({ webform_id: 1 }) });
      expect(error?.error).toBe('webform_required');
    });

    test('with an Idempotency-Key: the same reply again, another request 422', async () => {
      const body = await wish();
      const headers = { 'Idempotency-Key': 'again' };
      const first = await ask({ token, body, headers });
      await ask({ token, body: { ...body, webform_id: 3 } });
      const again = await ask({ token, body, headers });
      expect({ ...again, headers: again.headers.get('etag') }).toEqual({
        ...first,
        headers: first.headers.get('etag'),
      });
      const other = await ask({ token, body: { ...body, skipped: false }, headers });
      expect(other.error?.error).toBe('idempotency_key_reused');
      const { error } = await ask({ token, body, headers: { 'Idempotency-Key': 'ü' } });
      expect(error).toMatchObject({
        error: 'validation_failed',
        details: [{ path: 'header.Idempotency-Key' }],
      });
    });

    test('while the first with its key is under way: 409', async () => {
      const body = await wish();
      const headers = { 'Idempotency-Key': 'meanwhile' };
      const client = await database().connect();
      await client.query('BEGIN');
      await client.query('SELECT FROM letters.letter WHERE id = $1 FOR UPDATE', [body.letter_id]);
      const first = ask({ token, body, headers });
      const isTaken = `SELECT FROM letters.idempotency_key WHERE key = 'meanwhile' AND caller = $1`;
      await until('the first has come to the letter', async () => {
        return (await database().query(isTaken, [`user:${owner.id}`])).rowCount === 1;
      });
      const second = await ask({ token, body, headers });
      await client.query('COMMIT');
      client.release();
      expect(second.error).toMatchObject({ error: 'idempotency_key_in_use', code: 409 });
      expect(await first).toMatchObject({ status: 200 });
    });
  },
);

describe('the path is written in one way', () => {
  test.each(['/api/updateletter', '/api/updateLetter', '/api/updateletterskippedwebform', `${skipPath}/`])(
    'POST %s: 404, with a token, too',
    async (other) => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
      const body = JSON.stringify({ letter_id: await letter(), webform_id: 2, skipped: true });
      const response = await fetch(gateway + other, { method: 'POST', headers, body });
      expect(response.status).toBe(404);
      expect(((await response.json()) as contract.ErrorEnvelope).error).toBe('not_found');
    },
  );
});

const badQueries = ['state=lost', 'state=', 'limit=0', 'limit=101', 'cursor=!', 'user_id=1'];

describeEndpoint(contract.listLetters, { path, as: 'user', invalid: { queries: badQueries } }, ({ ask }) => {
  test("the demo's: one in each state, and another", async () => {
    const { body } = await ask({ query: { cursor: 6 } });
    const states = body!.items.map(({ id, state }) => [id, state]);
    expect(states).toEqual([
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
  });

  test("one's own, newest first, by state, a page at a time", async () => {
    const { id: userId, token: own } = await newUser();
    const ids = [
      await newLetter({ userId }),
      await newLetter({ userId, state: 'sent' }),
      await newLetter({ userId }),
    ];
    const { body } = await ask({ token: own });
    expect(body!.items.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(body!.items.every(({ user_id }) => user_id === userId)).toBe(true);
    const open = await ask({ token: own, query: { state: 'open', limit: 1 } });
    expect(open.body).toEqual({ items: [body!.items[0]], next_cursor: String(ids[2]) });
    const next = await ask({ token: own, query: { state: 'open', limit: 1, cursor: ids[2]! } });
    expect(next.body).toEqual({ items: [body!.items[2]], next_cursor: null });
  });
});

const badIds = ['0', '-1', '1.5', 'x', '9007199254740992'];

describeEndpoint(
  contract.readLetter,
  { path: nobodys, as: 'user', invalid: { ids: badIds } },
  ({ ask, send }) => {
    test("one's own, and with letters:write anybody's; for others it is not there", async () => {
      const id = await letter();
      const own = await ask({ token, params: { id } });
      expect(own).toMatchObject({ status: 200, body: { id, user_id: owner.id, state: 'open', version: 1 } });
      expect((await ask({ as: 'admin', params: { id } })).body).toEqual(own.body);
      for (const as of ['user', 'sre'] as const)
        expect((await ask({ as, params: { id } })).error?.error).toBe('not_found');
      expect((await send({})).error?.error).toBe('not_found');
    });

    test('who has the current one gets 304', async () => {
      const id = await letter();
      const { etag } = await read(id);
      const known = await ask({ token, params: { id }, headers: { 'If-None-Match': etag } });
      expect({ status: known.status, etag: known.headers.get('etag') }).toEqual({ status: 304, etag });
      expect(known.headers.get('cache-control')).toBe('private, no-cache');
    });
  },
);

const history = { path: `${nobodys}/history`, as: 'user', isMissing: true } as const;

describeEndpoint(contract.readLetterHistory, history, ({ ask }) => {
  test('what has happened, newest first, and who did it; a page at a time', async () => {
    const id = await letter();
    const body = { letter_id: id, webform_id: 2, skipped: true, reason: 'No.' };
    await call(gateway, contract.updateLetterSkippedWebform, { token, body });
    const admin = await tokenOf(gateway, 'admin');
    const headers = { 'If-Match': '*' };
    await call(gateway, contract.updateLetter, {
      token: admin,
      params: { id },
      body: { state: 'sent' },
      headers,
    });
    const all = (await ask({ token, params: { id } })).body!;
    const { id: adminId } = (await call(gateway, contract.me, { token: admin })).body!;
    expect(all.items).toMatchObject([
      { event: 'state_changed', actor: `user:${adminId}`, details: { from: 'open', to: 'sent' } },
      { event: 'webform_skipped', actor: `user:${owner.id}`, details: { webform_id: 2, reason: 'No.' } },
      { event: 'created', actor: 'command' },
    ]);
    const first = (await ask({ as: 'admin', params: { id }, query: { limit: 2 } })).body!;
    expect(first).toEqual({ items: all.items.slice(0, 2), next_cursor: String(all.items[1]!.id) });
    const query = { limit: 2, cursor: first.next_cursor! };
    expect((await ask({ token, params: { id }, query })).body).toEqual({
      items: all.items.slice(2),
      next_cursor: null,
    });
  });
});

describeEndpoint(
  contract.updateLetter,
  {
    path: nobodys,
    as: 'admin',
    body: { title: 'New' },
    invalid: {
      fields: [{ title: '' }, { title: 'x'.repeat(201) }, { state: 'lost' }, { state: null }, { version: 1 }],
      bodies: [{}],
    },
  },
  ({ ask, send }) => {
    test('title and state, one version', async () => {
      const id = await letter();
      const headers = { 'If-Match': (await read(id)).etag };
      const {
        status,
        body,
        headers: got,
      } = await ask({ params: { id }, headers, body: { title: 'New', state: 'sent' } });
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { title: 'New', state: 'sent', version: 2 },
      });
      expect(await read(id)).toEqual({ letter: body, etag: got.get('etag') });
      expect(await eventsOf(id)).toEqual(['state_changed', 'title_changed', 'created']);
    });

    test('without If-Match: 428; with an old one: 412; with the same at once: one lands', async () => {
      const id = await letter();
      const { etag } = await read(id);
      const change = { params: { id }, body: { state: 'sent' as const } };
      expect((await ask(change)).error).toMatchObject({ error: 'precondition_required', code: 428 });
      expect((await ask({ ...change, headers: stale })).error?.error).toBe('precondition_failed');
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          ask({ params: { id }, body: { title: `Title ${n}` }, headers: { 'If-Match': etag } }),
        ),
      );
      const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
      expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
      expect((await read(id)).letter.version).toBe(2);
    });

    test('a state that it cannot have now, and a title that is settled: 409', async () => {
      const id = await letter({ state: 'sent' });
      const headers = { 'If-Match': '*' };
      expect((await ask({ params: { id }, body: { state: 'open' }, headers })).error).toMatchObject({
        error: 'state_change_not_allowed',
        details: [{ message: 'sent' }, { message: 'open' }],
      });
      expect((await ask({ params: { id }, body: { title: 'New' }, headers })).error).toMatchObject({
        error: 'letter_closed',
        details: [{ path: 'state', message: 'sent' }],
      });
      expect((await ask({ params: { id }, body: { state: 'closed' }, headers })).status).toBe(200);
    });

    test('its owner may not: 403; no such letter: 404', async () => {
      const id = await letter();
      const headers = { 'If-Match': '*' };
      const own = await ask({ token, params: { id }, body: { title: 'New' }, headers });
      expect(own.error?.error).toBe('insufficient_scope');
      expect((await send({ body: '{"title":"New"}', headers })).error?.error).toBe('not_found');
    });
  },
);
