import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { type MailServer, startMailServer, tokenIn } from '../../../test/support/mail-server.ts';
import { freeRow } from '../../../test/support/ports.ts';
import { startTcpServer } from '../../../test/support/tcp-server.ts';
import { until, within } from '../../../test/support/wait.ts';
import { password, useAuth } from '../testing/start-auth.ts';

/** The mail server gets and quotes it as ann@example.com. */
const email = 'ann@Example.com';
const auth = useAuth({ sendsMail: true });
let stops: (() => unknown)[] = [];

beforeAll(() => auth.addUser(email, password));
beforeEach(async () => {
  await auth.sql('DELETE FROM auth.password_reset');
  auth.log.length = 0;
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const forgot = () => auth.ask(contract.forgotPassword, { body: { email } });
async function serve(options: Parameters<typeof startMailServer>[0] = {}): Promise<MailServer> {
  const server = await startMailServer(options);
  stops.push(server.close);
  return server;
}
const send = (port: number, options = {}) =>
  stops.unshift(auth.sendMails(port, { pauseSeconds: 0.05, ...options }));
const outcomes = async () => {
  const { values } = await auth.metrics.registry.getSingleMetric('mails_total')!.get();
  return Object.fromEntries(values.map(({ labels, value }) => [labels['outcome'], value]));
};
const isFinished = async () =>
  (await auth.sql('SELECT FROM auth.password_reset WHERE next_attempt_at IS NOT NULL')).length === 0;
const logged = (text: string) => auth.log.filter((line) => line.includes(text));
const resetsPassword = async (content: string | undefined) => {
  const body = { token: tokenIn(content!)!, new_password: password };
  return (await auth.ask(contract.resetPassword, { body })).status === 204;
};

test('a mail arrives when a server that was unreachable is back', async () => {
  const port = await freeRow(1);
  const before = await outcomes();
  await forgot();
  send(port);
  await until('two attempts have failed', () => logged('a mail was not sent').length >= 2);
  const server = await serve({ port });
  await until('the mail is sent', isFinished);
  expect(server.mails).toHaveLength(1);
  expect(await resetsPassword(server.mails[0]!.content)).toBe(true);
  await until('it is counted', async () => (await outcomes())['sent'] === before['sent']! + 1);
  expect((await outcomes())['failed']).toBeGreaterThanOrEqual(before['failed']! + 2);
});

const refusals: [string, boolean][] = [
  ['the recipient', false],
  ['the content', true],
];
test.each(refusals)('a mail is retried while the server refuses %s with 451', async (_, late) => {
  const server = await serve({ late, refuse: (attempt) => (attempt <= 2 ? 451 : undefined) });
  await forgot();
  send(server.port);
  await until('the mail is sent', isFinished);
  expect([server.attempts(), server.mails.length]).toEqual([3, 1]);
  expect(await resetsPassword(server.mails[0]!.content)).toBe(true);
});

test.each(refusals)(
  'a mail is abandoned when the server refuses %s with 550; the log says so without the email',
  async (_, late) => {
    const server = await serve({ late, refuse: () => 550 });
    const { abandoned } = await outcomes();
    await forgot();
    send(server.port);
    await until('it is abandoned', isFinished);
    expect(server.attempts()).toBe(1);
    await until('it is counted', async () => (await outcomes())['abandoned'] === abandoned! + 1);
    const [line] = logged('no further attempt follows');
    expect(JSON.parse(line!)).toMatchObject({
      level: 'warn',
      attempt: 1,
      reason: expect.stringContaining('550 refused <[email]>') as unknown,
    });
    expect(auth.log.join()).not.toMatch(/ann@example/i);
  },
);

test('a mail is abandoned when its token expires before another attempt', async () => {
  const server = await serve({ refuse: () => 451 });
  const { abandoned } = await outcomes();
  await forgot();
  await auth.sql(`UPDATE auth.password_reset SET created_at = now() - interval '1790 s'`);
  send(server.port, { pauseSeconds: 30 });
  await until('it is counted', async () => (await outcomes())['abandoned'] === abandoned! + 1);
  expect(await isFinished()).toBe(true);
});

test('retries a mail after a server that accepts the connection but does not reply', async () => {
  const silent = await startTcpServer();
  await forgot();
  send(silent.port, { waitMs: 1_000 });
  const line = await until('an attempt fails', () => logged('it will be retried')[0]);
  expect(JSON.parse(line)).toMatchObject({ reason: 'Greeting never received' });
  silent.close();
  const server = await serve({ port: silent.port });
  await until('the mail is sent', isFinished);
  expect(server.mails).toHaveLength(1);
});

test('a process that stops does not wait for the server, and another process sends the mail', async () => {
  const silent = await startTcpServer();
  stops.push(silent.close);
  await forgot();
  const stop = auth.sendMails(silent.port, { pauseSeconds: 0.05 });
  await until('it is connected', () => silent.connections() > 0);
  await within('the end of the attempt', stop(), 5_000);
  expect(await isFinished()).toBe(false);
  const server = await serve();
  send(server.port);
  await until('the mail is sent', isFinished);
  expect(server.mails).toHaveLength(1);
});

test('a process that crashes during an attempt loses no mail: another one sends it', async () => {
  await forgot();
  const claimed = await auth.stores.transaction(({ passwordResets }) => passwordResets.claim(0.2));
  expect(claimed).toMatchObject({ email, attempt: 1 });
  const server = await serve({
    options: { onRcptTo: (_to, _session, done) => void setTimeout(done, 2_500) },
  });
  for (const _ of [1, 2]) send(server.port, { pauseSeconds: 30, waitMs: 2_000 });
  await until('the mail is sent', isFinished);
  expect(server.mails).toHaveLength(1);
});

test.each([
  ['has no STARTTLS', false, /upgrade|STARTTLS/i],
  ['has an untrusted certificate', true, /certificate/],
])('sends nothing to a server that %s where TLS is required', async (_, tls, reason) => {
  const server = await serve({ tls });
  await forgot();
  send(server.port, { requireTLS: true });
  const line = await until('an attempt fails', () => logged('it will be retried')[0]);
  expect((JSON.parse(line) as { reason: string }).reason).toMatch(reason);
  expect(server.mails).toEqual([]);
});
