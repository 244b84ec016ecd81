import { afterEach, expect, jest, test } from '@jest/globals';
import { calledAfterEach } from '../../test/support/called-after-each.ts';
import { startHttpServer } from '../../test/support/http-server.ts';
import { until } from '../../test/support/wait.ts';
import { createLogger } from './logger.ts';
import { createMetrics } from './metrics.ts';
import {
  fetchRevocationsFrom,
  watchRevocations,
  type FetchRevocations,
  type RevocationPage,
  revocationPage,
} from './auth-state.ts';

const closers = calledAfterEach();
afterEach(() => void jest.restoreAllMocks());

function watch(fetchSince?: FetchRevocations) {
  const feed: RevocationPage['revocations'] = [];
  const state = { unavailable: false, asked: [] as number[] };
  const own: FetchRevocations = (after) => {
    state.asked.push(after);
    if (state.unavailable) return Promise.reject(new Error('unavailable'));
    const revocations = feed.filter(({ id }) => id > after);
    return Promise.resolve(revocationPage.parse({ revocations, last: feed.at(-1)?.id ?? 0, ofNewerAuth: 1 }));
  };
  const lines: string[] = [];
  const logger = createLogger('gateway', 'info', { write: (line) => void lines.push(line) });
  const metrics = createMetrics('gateway');
  const revocations = watchRevocations(fetchSince ?? own, logger, metrics);
  closers.push(() => revocations.close());
  return { feed, state, lines, metrics, revocations };
}

test('includes a revoked session and no other', async () => {
  const { feed, revocations } = watch();
  await until('the list is loaded', () => !revocations.isRevoked({ sessionId: '7' }));
  feed.push({ id: 1, session: '7' });
  await until('the revocation has arrived', () => revocations.isRevoked({ sessionId: '7' }));
  expect(revocations.isRevoked({ sessionId: '77' })).toBe(false);
  expect(revocations.isRevoked({ clientId: '7', issuedAt: 0 })).toBe(false);
});

test("includes a client's tokens issued until the revocation, not later ones", async () => {
  const { feed, revocations } = watch();
  feed.push({ id: 1, client: 'cms', issued_until: 1_000 });
  await until('the revocation has arrived', () =>
    revocations.isRevoked({ clientId: 'cms', issuedAt: 1_000 }),
  );
  expect(revocations.isRevoked({ clientId: 'cms', issuedAt: 1_001 })).toBe(false);
  feed.push({ id: 2, client: 'cms', issued_until: 2_000 });
  await until('the revocation has arrived', () =>
    revocations.isRevoked({ clientId: 'cms', issuedAt: 1_001 }),
  );
});

test('fetches new entries only, and all entries after the database was restored from a backup', async () => {
  const { feed, state, revocations } = watch();
  feed.push({ id: 5, session: 'a' });
  await until('the revocation has arrived', () => revocations.isRevoked({ sessionId: 'a' }));
  await until('the next fetch has begun', () => state.asked.at(-1) === 5);
  feed.splice(0, 1, { id: 2, session: 'b' });
  await until('the revocation has arrived', () => revocations.isRevoked({ sessionId: 'b' }));
  expect(revocations.isRevoked({ sessionId: 'a' })).toBe(true);
});

test('throws 503 before the first fetch; later keeps the last list and exports its age', async () => {
  const { feed, state, lines, metrics, revocations } = watch();
  state.unavailable = true;
  const none = watch(() => Promise.reject(new Error('unavailable'))).revocations;
  await until('a fetch has begun', () => state.asked.length > 1);
  expect(() => none.isRevoked({ sessionId: '7' })).toThrow(expect.objectContaining({ status: 503 }));
  state.unavailable = false;
  feed.push({ id: 1, session: '7' });
  await until('the revocation has arrived', () => revocations.isRevoked({ sessionId: '7' }));
  state.unavailable = true;
  const before = state.asked.length;
  await until('a fetch has failed', () => state.asked.length > before + 1);
  expect(revocations.isRevoked({ sessionId: '7' })).toBe(true);
  const age = async () => {
    const [series] = (await metrics.registry.getSingleMetric('revocations_age_seconds')!.get()).values;
    return series!.value;
  };
  expect(await age()).toBeGreaterThan(0.5);
  expect(lines.filter((line) => line.includes('revocations not fetched')).length).toBeGreaterThan(0);
  const logged = lines.length;
  await until('another fetch has begun', () => state.asked.length > before + 3);
  expect(lines).toHaveLength(logged);
});

test('deletes revocations older than every token', async () => {
  const { feed, revocations } = watch();
  feed.push({ id: 1, session: 'old' });
  await until('the revocation has arrived', () => revocations.isRevoked({ sessionId: 'old' }));
  const now = performance.now.bind(performance);
  let minutes = 15;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + minutes * 60_000);
  feed.push({ id: 2, session: 'new' });
  await until('the next revocation has arrived', () => revocations.isRevoked({ sessionId: 'new' }));
  expect(revocations.isRevoked({ sessionId: 'old' })).toBe(true);
  minutes = 17;
  await until('the revocation is deleted', () => !revocations.isRevoked({ sessionId: 'old' }));
  expect(revocations.isRevoked({ sessionId: 'new' })).toBe(true);
});

test('a hanging, failing or malformed reply is a failed fetch', async () => {
  const answers: Record<string, (end: (body: string, status?: number) => void) => void> = {
    '/hang': () => undefined,
    '/500': (end) => end('{"revocations":[],"last":0}', 500),
    '/html': (end) => end('<html>'),
    '/empty': (end) => end('{}'),
  };
  const { origin, close } = await startHttpServer(({ url }, response) => {
    const answer = Object.entries(answers).find(([path]) => url!.startsWith(path))![1];
    answer((body, status = 200) => response.writeHead(status).end(body));
  });
  closers.push(close);
  for (const path of Object.keys(answers))
    await expect(fetchRevocationsFrom(origin + path)(0, '', new AbortController().signal)).rejects.toThrow();
});
