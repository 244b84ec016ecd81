// `npm run bench -- login-timing`: tests on the running stack whether the duration of a refused login reveals the
// reason.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentWith, ROOT } from '../../deploy/local/config.ts';
import { Problem } from '../../deploy/local/problem.ts';
import { stack } from '../support/stack.ts';
import { percentile } from './percentiles.ts';

const triesEach = 2_000;
const concurrency = 8;
/** Maximum pause in ms. Without pauses, clients refused at the same moment would retry together and queue. */
const longestPause = 500;
const highestArea = 0.55;

/** Hashes of a password that the benchmark never sends; the accounts were imported with them. */
const bcrypt10 = '$2y$10$ynl63XNloIGJ0O6utdS2B.MpKhUXZ4oXvPqMztLhwXTRqQ4et5nZy';
const bcrypt12 = '$2y$12$KJmeo8s9P4vrGxpJX6lhg.0bbBEts9XP0JdP6OPQCrEAucN6ZE5Em';
const argon2 =
  '$argon2id$v=19$m=19456,t=2,p=1$LiDEv8nbPG7XRiup7SOQog$cYGd6mtB42B4odyhsLy2t1+eGWHXcnQrcR2Wg1HcIBU';
const kinds: Record<string, readonly string[]> = {
  'unknown address': [],
  'wrong, argon2': [argon2],
  'wrong, bcrypt': [bcrypt10, bcrypt12],
};

interface Try {
  kind: string;
  email: string;
  hash: string | undefined;
}

/**
 * Returns all attempts in random order. Each uses its own account and IP address, because the limits on guessing are on and
 * would count a second failure. The bench calls the service directly, where a client can choose its IP address.
 */
function plan(): Try[] {
  const tries = Object.entries(kinds).flatMap(([kind, hashes], k) =>
    Array.from({ length: triesEach }, (_, n) => ({
      kind,
      email: `person-${k}-${n}@example.com`,
      hash: hashes[n % hashes.length],
    })),
  );
  return tries
    .map((one) => ({ one, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);
}

async function importAccounts(tries: readonly Try[]): Promise<void> {
  const env = environmentWith({ DATABASE_URL: stack().postgres });
  const args = [join(ROOT, 'services', 'auth', 'admin.ts'), 'import-users'];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'inherit', 'inherit'] });
  for (const { email, hash } of tries)
    if (hash) child.stdin.write(`${JSON.stringify({ email, name: 'A Person', password_hash: hash })}\n`);
  child.stdin.end();
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Problem('The accounts could not be imported.');
}

/** Logs in with a wrong password. Resolves with the duration of the refusal in ms. */
async function measure({ email }: Try, number: number): Promise<number> {
  const address = `10.${[number >> 16, number >> 8, number].map((part) => part & 255).join('.')}`;
  const request = {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': address },
    body: JSON.stringify({ email, password: 'not-the-password' }),
  };
  const start = performance.now();
  const response = await fetch(`${stack().services['auth']!.public}/api/login`, request);
  const text = await response.text();
  const ms = performance.now() - start;
  if (response.status !== 401) throw new Problem(`A login was answered ${response.status}: ${text}`);
  return ms;
}

async function measureAll(tries: readonly Try[]): Promise<Map<string, number[]>> {
  const times = new Map(Object.keys(kinds).map((kind) => [kind, [] as number[]]));
  const left = tries.entries();
  const worker = async () => {
    for (const [number, one] of left) {
      times.get(one.kind)!.push(await measure(one, number));
      await sleep(Math.random() * longestPause);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return times;
}

/**
 * Returns the area under the ROC curve: how well a number separates two kinds (0.5: not at all, 1: always). It is the share
 * of pairs in which the first value is greater; ties count half.
 */
function areaBetween(one: readonly number[], other: readonly number[]): number {
  let greater = 0;
  for (const a of one) for (const b of other) greater += a > b ? 1 : a === b ? 0.5 : 0;
  const area = greater / (one.length * other.length);
  return Math.max(area, 1 - area);
}

const tries = plan();
await importAccounts(tries);
const times = await measureAll(tries);
console.log(`ms until a login is refused, ${triesEach} tries each, ${concurrency} at a time`);
for (const [kind, all] of times) {
  const at = (part: number) => percentile(all, part).toFixed(1).padStart(7);
  console.log(`  ${kind.padEnd(17)} median ${at(0.5)}   p99 ${at(0.99)}`);
}
console.log(`area under the ROC curve, 0.5 tells nothing, ${highestArea} is allowed`);
const all = [...times];
for (const [index, [kind, one]] of all.entries())
  for (const [otherKind, other] of all.slice(index + 1)) {
    const area = areaBetween(one, other);
    console.log(`  ${`${kind} / ${otherKind}`.padEnd(34)} ${area.toFixed(3)}`);
    if (area > highestArea) process.exitCode = 1;
  }
