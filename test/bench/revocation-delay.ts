// `npm run bench -- revocation`: how long after a logout's answer a token is still taken, at the gateway and at a service
// reached directly, on the stack that is running.
import { setTimeout as sleep } from 'node:timers/promises';
import { login, logout } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { readStack } from '../../deploy/local/stack-file.ts';
import { DEMO_PASSWORD } from '../../deploy/local/demo-accounts.ts';
import { percentile } from './percentiles.ts';

const tries = 200;
const stack = readStack();
const auth = stack.services['auth']!.public;
const path = '/api/content/webform/12?view=summary';
const doors = { gateway: stack.gateway, 'content-cache': stack.services['content-cache']!.public };

/** Asks again and again; resolves with the ms from `since` to the last answer that was not 401, 0 if there was none. */
async function takenFor(origin: string, token: string, since: number): Promise<number> {
  const headers = { Authorization: `Bearer ${token}` };
  for (let last = since; ;) {
    const { status } = await fetch(origin + path, { headers }).then(async (response) => {
      await response.arrayBuffer();
      return response;
    });
    if (status === 401) return last - since;
    last = performance.now();
    if (last - since > 10_000) throw new Error(`${origin} takes a revoked token for 10 s`);
  }
}

const delays: Record<string, number[]> = { gateway: [], 'content-cache': [] };
for (let n = 0; n < tries; n += 1) {
  // Straight to the service: the gateway limits logins to 60 a minute.
  const body = { email: 'user@example.com', password: DEMO_PASSWORD };
  const opened = await call(auth, login, { body });
  if (opened.error) throw new Error(opened.error.message);
  const { token } = opened.body;
  // At any moment between two polls.
  await sleep(Math.random() * 500);
  await call(stack.gateway, logout, { token });
  const since = performance.now();
  await Promise.all(
    Object.entries(doors).map(async ([name, origin]) => {
      delays[name]!.push(await takenFor(origin, token, since));
    }),
  );
}
console.log(`ms after the answer to a logout until the access token is refused, ${tries} logouts`);
for (const [name, all] of Object.entries(delays)) {
  const at = (part: number) => percentile(all, part).toFixed(0).padStart(5);
  console.log(`  ${name.padEnd(14)} p50 ${at(0.5)}   p99 ${at(0.99)}   max ${at(1)}`);
}
