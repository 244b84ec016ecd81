import { expect, test } from '@jest/globals';
import {
  deleteFailedJob,
  deleteFailedJobs,
  listAudit,
  login,
  readLetter,
  readLetterHistory,
  token as clientToken,
  updateLetter,
} from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { accepted, machine, newAddress, newUser, tokenOf } from '../../../test/support/accounts.ts';
import { newFailedJob } from '../../../test/support/failed-jobs.ts';
import { newLetter } from '../../../test/support/letters.ts';
import { stack } from '../../../test/support/stack.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();
const queries = ['event=other', 'event=', 'user_id=0', 'user_id=x', 'actor=command'];
const aUser = expect.stringMatching(/^user:\d+$/) as unknown as string;

describeEndpoint(listAudit, { invalid: { queries } }, ({ ask }) => {
  test('lists the events of a user, newest first, in pages', async () => {
    const { id, email, address } = await newUser();
    const elsewhere = newAddress();
    const headers = { 'X-Forwarded-For': elsewhere };
    await call(gateway, login, { body: { email, password: 'not the password' }, headers });
    const { body } = await ask({ query: { user_id: id } });
    expect(body!.next_cursor).toBeNull();
    expect(body!.items).toMatchObject([
      { event: 'login_failed', user_id: id, actor: null, address: elsewhere },
      { event: 'login', user_id: id, actor: `user:${id}`, address, details: { device: 'node' } },
      { event: 'user_created', user_id: id, details: { roles: ['user'] } },
    ]);
    for (const { at } of body!.items) expect(Math.abs(Date.now() - Date.parse(at))).toBeLessThan(60_000);
    const first = (await ask({ query: { user_id: id, limit: 2 } })).body!;
    expect(first.items).toEqual(body!.items.slice(0, 2));
    const rest = await ask({ query: { user_id: id, limit: 2, cursor: first.next_cursor! } });
    expect(rest.body).toEqual({ items: body!.items.slice(2), next_cursor: null });
  });

  test('lists which staff read whose letter, and not what users read themselves', async () => {
    const user = await newUser();
    const letter = await newLetter({ userId: user.id });
    const params = { id: letter };
    await call(gateway, readLetter, { params, token: user.token });
    const token = await tokenOf(gateway, 'admin');
    const address = newAddress();
    await call(gateway, readLetter, { params, token, headers: { 'X-Forwarded-For': address } });
    await call(gateway, readLetterHistory, { params, token });
    const { body } = await ask({ query: { user_id: user.id, event: 'letter_read' } });
    const read = { actor: aUser, details: { letter_id: letter } };
    expect(body!.items).toMatchObject([read, { ...read, address }]);
  });

  test('lists staff who got a letter by a change that changed nothing', async () => {
    const { id: userId } = await newUser();
    const id = await newLetter({ userId });
    const [token, headers] = [await tokenOf(gateway, 'admin'), { 'If-Match': '*' }];
    const change = () =>
      call(gateway, updateLetter, { params: { id }, body: { state: 'draft' }, headers, token });
    await change();
    expect((await change()).body).toMatchObject({ id, state: 'draft' });
    const { body } = await ask({ query: { user_id: userId, event: 'letter_read' } });
    expect(body!.items).toMatchObject([{ details: { letter_id: id } }]);
  });

  test('lists who deleted failed jobs', async () => {
    const token = await tokenOf(gateway, 'sre');
    const id = await newFailedJob('too_large');
    await newFailedJob('too_large');
    await call(gateway, deleteFailedJob, { params: { id }, token });
    const filter = { class: 'too_large', state: 'open' } as const;
    await call(gateway, deleteFailedJobs, { body: filter, token });
    const { body } = await ask({ query: { event: 'failed_jobs_deleted' } });
    const bySre = { user_id: null, actor: aUser };
    // Another test file may delete jobs at the same time.
    const isOwn = new RegExp(`"too_large"|"job_id":${id}\\b`);
    expect(body!.items.filter(({ details }) => isOwn.test(JSON.stringify(details)))).toMatchObject([
      { ...bySre, details: { filter, deleted: 1 } },
      { ...bySre, details: { job_id: id } },
    ]);
  });

  test('filters by event type', async () => {
    const { id, secret } = machine;
    const body = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    await accepted(call(gateway, clientToken, { body }));
    const { items } = (await ask({ query: { event: 'client_token' } })).body!;
    expect(new Set(items.map(({ event }) => event))).toEqual(new Set(['client_token']));
    expect(items.map(({ actor }) => actor)).toContain('client:content-server');
  });
});
