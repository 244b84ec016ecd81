import { beforeAll, expect, test } from '@jest/globals';
import { longBackoff, queriesOf, useAuth } from '../testing/start-auth.ts';

const auth = useAuth({ backoff: longBackoff });
beforeAll(async () => {
  await auth.person();
});

/** Each request uses another account and address. Otherwise the limits on guessing would apply first. */
let accounts = 0;
const email = () => `${(accounts += 1)}@b.de`;
const from = () => ({ 'X-Forwarded-For': `10.0.${accounts >> 8}.${accounts % 256}` });
const logIn = () => auth.logIn(email(), 'guess', from());
const askToken = () => auth.askAsClient(`cms-${(accounts += 1)}`, 'guess', from());

test.each([
  ['logins', 'find_user_by_email', logIn],
  ['machine clients', 'find_client', askToken],
])('a flood of %s: refused requests get Retry-After and cause no query', async (_, operation, ask) => {
  const before = await queriesOf(auth, operation);
  let [asked, busy] = [0, 0];
  // On a busy machine the requests of the flood may arrive slowly.
  while (busy === 0 && asked < 1_000) {
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask()));
    asked += answers.length;
    // Excludes requests that waited too long for a busy database, because they were checked.
    const refused = answers.filter(({ error }) => error?.message.startsWith('The server is overloaded'));
    for (const { status, headers } of refused) {
      expect(status).toBe(503);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    busy += refused.length;
  }
  expect(busy).toBeGreaterThan(0);
  // If the database was busy, some of the checked requests got no connection, so the number can be lower.
  expect((await queriesOf(auth, operation)) - before).toBeLessThanOrEqual(asked - busy);
});

test('counts logins by outcome', async () => {
  for (let guesses = 0; guesses < 11; guesses += 1) await auth.logIn('guessed@example.com', 'guess');
  const { values } = await auth.metrics.registry.getSingleMetric('logins_total')!.get();
  const counts = Object.fromEntries(values.map(({ labels, value }) => [labels['outcome'], value]));
  expect(Object.keys(counts).toSorted()).toEqual(['failure', 'limited', 'refused', 'success']);
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(0);
});
