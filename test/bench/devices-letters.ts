// `npm run bench -- devices letters`: reads and writes of both services, mixed, through the gateway of the stack that
// is running, whose rate limits must be off (RATE_LIMIT_SCALE=0).
import { randomInt, randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { newUser } from '../support/accounts.ts';
import { newLetter } from '../support/letters.ts';
import { closeRecords } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { openLoop, type Kind, type Outcome } from './open-loop.ts';
import { percentile } from './percentiles.ts';

const perSecond = 200;
const seconds = 20;
/** Not counted: the first requests of a process are compiled, not answered. */
const warmUpSeconds = 5;
const limitMs = 100;
const users = 20;
const webforms = [1, 2, 3, 4, 5, 6];

interface Person {
  token: string;
  letters: number[];
  phones: string[];
}

async function person(): Promise<Person> {
  const { id: userId, token } = await newUser();
  const letters: number[] = [];
  for (let n = 0; n < 5; n += 1) letters.push(await newLetter({ userId, webforms }));
  return { token, letters, phones: [randomUUID(), randomUUID(), randomUUID()] };
}

const pick = <T>(from: readonly T[]): T => from[randomInt(from.length)]!;
const dispatcher = new Agent({ connections: 256, pipelining: 1 });

async function ask({ token }: Person, method: 'GET' | 'POST', path: string, body?: unknown): Promise<void> {
  const reply = await request(stack().gateway + path, {
    method,
    dispatcher,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.body.text();
  if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${text}`);
}

function kindsOf(people: readonly Person[]): Kind[] {
  const kind = (name: string, weight: number, send: (one: Person) => Promise<void>): Kind => ({
    name,
    weight,
    send: () => send(pick(people)),
  });
  const register = (one: Person, token: string) =>
    ask(one, 'POST', '/api/register-fcm-token', { token, platform: 'android', name: 'A phone' });
  return [
    kind('register a device again', 15, (one) => register(one, pick(one.phones))),
    kind('register a new device', 5, (one) => register(one, randomUUID())),
    kind('list devices', 20, (one) => ask(one, 'GET', '/api/devices')),
    kind('skip or take back', 20, (one) => {
      const body = {
        letter_id: pick(one.letters),
        webform_id: pick(webforms.slice(1)),
        skipped: Math.random() < 0.5,
      };
      return ask(one, 'POST', '/api/updateLetterSkippedWebform', body);
    }),
    kind('read a letter', 20, (one) => ask(one, 'GET', `/api/letters/${pick(one.letters)}`)),
    kind('list letters', 20, (one) => ask(one, 'GET', '/api/letters')),
  ];
}

function times(outcomes: readonly Outcome[]): { p95: number; line: string } {
  const all = outcomes.map(({ ms }) => ms);
  const at = (part: number) => percentile(all, part);
  const shown = (part: number) => at(part).toFixed(1).padStart(7);
  const line = `p50 ${shown(0.5)}   p95 ${shown(0.95)}   p99 ${shown(0.99)}   max ${shown(1)}`;
  return { p95: at(0.95), line };
}

const people: Person[] = [];
while (people.length < users) people.push(await person());
await closeRecords();
const kinds = kindsOf(people);
const warmUp = await openLoop(kinds, perSecond, warmUpSeconds);
const outcomes = await openLoop(kinds, perSecond, seconds);
await dispatcher.close();

console.log(`ms through the gateway, ${perSecond} requests/s for ${seconds} s`);
for (const { name } of kinds) {
  const own = outcomes.filter(({ kind }) => kind === name);
  console.log(`  ${name.padEnd(24)} ${String(own.length).padStart(5)}   ${times(own).line}`);
}
const { p95, line } = times(outcomes);
console.log(`  ${'all'.padEnd(24)} ${String(outcomes.length).padStart(5)}   ${line}`);
const errors = [...warmUp, ...outcomes].flatMap(({ error }) => error ?? []);
console.log(`${errors.length} errors; p95 may be ${limitMs} ms`);
for (const error of new Set(errors.slice(0, 20))) console.log(`  ${error}`);
process.exitCode = errors.length === 0 && p95 < limitMs ? 0 : 1;
