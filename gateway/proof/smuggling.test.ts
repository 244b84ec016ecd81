import { afterAll, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { type FramingCase, framingCases } from '../testing/framing-cases.ts';
import { startGateway } from '../testing/gateway.ts';
import { createRawClient, envelopeProblem, type RawReply, parseReply } from '../testing/raw-client.ts';
import { markOf, startStrictUpstream, type WholeRequest } from '../testing/strict-upstream.ts';
import { mint } from '../testing/tokens.ts';
import { writeResult } from '../../test/support/results.ts';

const seed = Number(process.env['PROOF_SEED'] ?? Date.now() % 1_000_000_000);
const count = 2_000;
const lanes = 8;
/** Time in which the gateway must close a connection. Its own timeouts are shorter in this test. */
const limitMs = 20_000;
const server = { headersTimeout: 3_000, requestTimeout: 3_000, connectionsCheckingInterval: 250 };

const victim = 'GET /.well-known/jwks.json?mark=victim HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const second = 'GET /.well-known/jwks.json?mark=second HTTP/1.1\r\nHost: x\r\n\r\n';
const figures = { cases: 0, refused: 0, forwarded: 0, victims: 0, reused: 0, connections: 0, wrong: 0 };

/** Sends the bytes in two pieces and returns every reply until the gateway closes the connection. */
async function converse(origin: string, bytes: string, cut: number): Promise<RawReply[]> {
  const { port, hostname } = new URL(origin);
  const socket = connect(Number(port), hostname).setNoDelay().setEncoding('latin1');
  let raw = '';
  socket.on('error', () => undefined).on('data', (piece: string) => (raw += piece));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  socket.write(bytes.slice(0, cut), 'latin1');
  await setImmediate();
  socket.write(bytes.slice(cut), 'latin1');
  const timer = setTimeout(() => socket.destroy(new Error('timed out')), limitMs);
  const start = performance.now();
  await closed;
  clearTimeout(timer);
  if (performance.now() - start >= limitMs) throw new Error(`open after ${limitMs} ms: ${raw}`);
  const replies: RawReply[] = [];
  for (let parsed = parseReply(raw); parsed; parsed = parseReply(raw)) {
    if (parsed[0].status !== 100) replies.push(parsed[0]);
    raw = parsed[1];
  }
  if (raw !== '') throw new Error(`incomplete reply: ${raw}`);
  return replies;
}

/** Lists the replies that do not belong to the request at their position. */
function repliesProblems(sent: string[], replies: RawReply[]): string[] {
  const wrong = replies.length > sent.length ? [`${replies.length} replies to ${sent.length} requests`] : [];
  return replies.reduce((problems, reply, index) => {
    if (reply.status !== 200) {
      const isRefusal = reply.status >= 400 && reply.status < 500;
      return [
        ...problems,
        ...(isRefusal ? [] : [`answered ${reply.status}`]),
        ...[envelopeProblem(reply) ?? []].flat(),
      ];
    }
    const { mark } = JSON.parse(reply.body) as { mark: string };
    return mark === sent[index] ? problems : [...problems, `${sent[index]} got the reply of ${mark}`];
  }, wrong);
}

/** Lists the errors of the requests that arrived at the service. */
function arrivedProblems({ marks, outcome }: FramingCase, arrived: WholeRequest[]): string[] {
  const seen = arrived.map(({ target }) => markOf(target));
  const repeated = seen.length === new Set(seen).size ? [] : [`arrived more than once: ${seen.join()}`];
  return arrived.reduce((problems, { method, target, head, body }) => {
    const mark = markOf(target);
    const isPlain = method === 'GET' && body === '';
    if (mark === 'victim' || mark === 'second')
      return isPlain ? problems : [...problems, `the ${mark} has changed`];
    if (!marks.includes(mark)) return [...problems, `arrived, but was never sent: ${head}`];
    if (outcome.kind !== 'clean' && outcome.kind !== 'lenient')
      return [...problems, `it arrived with ${JSON.stringify(body)}`];
    return body === outcome.body ? problems : [...problems, `it arrived as ${JSON.stringify(body)}`];
  }, repeated);
}

async function runLane(cases: (readonly [FramingCase, number])[]): Promise<string[]> {
  const wrong: string[] = [];
  const upstream = await startStrictUpstream();
  const services = { auth: upstream.url, 'media-upload': upstream.url };
  const gateway = await startGateway({ services, server, timeouts: { drain: 100 } });
  const client = createRawClient(gateway.origin, limitMs);
  for (const [framingCase, index] of cases) {
    const problems: string[] = [];
    const before = upstream.connections();
    upstream.received.splice(0);
    upstream.problems.splice(0);
    const cut = index % 3 === 0 ? framingCase.bytes.length : (index * 7_919) % framingCase.bytes.length;
    try {
      const replies = await converse(gateway.origin, framingCase.bytes + victim, cut);
      const sent = [...framingCase.marks, 'victim'];
      problems.push(...repliesProblems(sent, replies));
      const ok = replies.filter(({ status }) => status === 200).length;
      if (framingCase.outcome.kind === 'clean' && ok < (framingCase.outcome.ends ? 1 : sent.length))
        problems.push(`only ${ok} of ${sent.length} were answered 200`);
      const reply = await client.ask(second);
      if (reply?.status !== 200 || reply.body !== '{"mark":"second"}')
        problems.push(`the second client got ${reply?.body}`);
    } catch (error) {
      problems.push((error as Error).message);
    }
    // Ignores programs that request keys from the gateway of an earlier test: their user agent is node.
    const received = upstream.received.filter(({ head }) => !/^user-agent: node$/im.test(head));
    problems.push(...upstream.problems, ...arrivedProblems(framingCase, received));
    for (const problem of problems)
      wrong.push(`${JSON.stringify(framingCase.name).slice(0, 300)}: ${problem.slice(0, 400)}`);
    figures.cases += 1;
    if (received.some(({ target }) => framingCase.marks.includes(markOf(target)))) figures.forwarded += 1;
    else figures.refused += 1;
    if (received.some(({ target }) => markOf(target) === 'victim')) figures.victims += 1;
    if (received.some(({ connection }) => connection <= before)) figures.reused += 1;
  }
  client.close();
  figures.connections += upstream.connections();
  await gateway.close();
  upstream.close();
  return wrong;
}

test('a request gets its own reply after any malformed bytes, and only complete requests arrive', async () => {
  const cases = framingCases(mint(), count, seed).map((framingCase, index) => [framingCase, index] as const);
  const each = await Promise.all(
    Array.from({ length: lanes }, (_, lane) => runLane(cases.filter(([, index]) => index % lanes === lane))),
  );
  const wrong = each.flat();
  figures.wrong = wrong.length;
  expect({ seed, wrong: wrong.length, first: wrong.slice(0, 20) }).toEqual({ seed, wrong: 0, first: [] });
  expect(figures.cases).toBe(count);
  expect(figures.forwarded).toBeGreaterThan(count / 10);
  // Leftover bytes of a request would appear in the next request on the connection.
  expect(figures.victims).toBeGreaterThan(count / 10);
  expect(figures.reused).toBeGreaterThan(count / 10);
}, 180_000);
afterAll(() => writeResult('faults', 'smuggling', { seed, ...figures }));
