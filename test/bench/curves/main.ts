// `npm run bench -- curves`: measures the cost of a read while one quantity grows: connections, record size or
// number of users. The points of a curve are measured in alternating rounds.
import { closeRecords, freshId, save } from '../../support/records.ts';
import { startAuth } from '../gateway/auth.ts';
import { stopAll } from '../gateway/processes.ts';
import type { Job } from '../load/job.ts';
import { inRotatingOrder } from '../rotating-order.ts';
import {
  measure,
  otherCore,
  pin,
  pinTestSystem,
  stackVersions,
  startPeople,
  startTestSystem,
  type Round,
} from '../test-system.ts';
import { conclude } from '../verdict.ts';

const rounds = Number(process.env['CURVES_ROUNDS'] ?? 5);
const seconds = 2;
const warmUpSeconds = Number(process.env['CURVES_WARM_UP'] ?? 10);
/** Default number of connections; low enough that no request is refused. */
const connections = 16;
/** Share of the capacity for curves in which idle connections grow. */
const calm = 0.3;

const load = startPeople();

interface Point {
  at: number;
  measure: () => Promise<Round>;
  rounds: Round[];
}

interface Curve {
  name: string;
  unit: string;
  how: string;
  points: Point[];
}

type Asked = Pick<Job, 'origins' | 'paths'> & Partial<Job> & { pids: Record<string, number> };

/** By default each connection waits for its replies. */
const ask = ({ pids, ...job }: Asked): Promise<Round> =>
  measure(load, { seconds, perSecond: 0, kept: 0, connections, ...job }, pids);

const pointAt = (at: number, asked: Asked, prepare?: () => void): Point => ({
  at,
  rounds: [],
  measure: () => {
    prepare?.();
    return ask(asked);
  },
});

/** Creates a record whose reply has this many bytes. */
async function makeRecord(bytes: number): Promise<string> {
  const id = freshId();
  await save('pathway', id, 'Measured', { text: 'x'.repeat(Math.max(1, bytes - 150)) });
  return `/api/content/pathway/${id}`;
}

try {
  const { sign, url: light, pid } = await startAuth();
  // The largest number is sent only partly: every request has a new token, as a cache of 10,000 tokens sees with 100,000.
  const signed = 10_000 + rounds * seconds * 2_000;
  console.log(`Signing ${signed} tokens`);
  const all = Array.from({ length: signed }, (_, index) => sign(index + 1));
  const crowd = (count: number) => all.slice(0, Math.min(count, all.length));
  const stand = await startTestSystem(light);
  // Users who send one request would evict the others from the token cache.
  const crowded = await startTestSystem(light);
  for (const each of [stand, crowded]) pinTestSystem(each);
  for (const each of [process.pid, load.pid, pid]) pin(each, otherCore);
  const small = await makeRecord(1_000);
  const one = { origins: [stand.gateway], paths: [small], pids: stand.pids };

  load.post(crowd(100));
  const other = { ...one, origins: [crowded.gateway], pids: crowded.pids };
  for (const each of [other, one])
    for (let second = 0; second < warmUpSeconds; second += seconds) await ask(each);
  const { perSecond: capacity } = await ask({ ...one, seconds: 3 * seconds });
  const perSecond = Math.max(20, Math.round(capacity * calm));

  const sizes = [1_000, 10_000, 100_000, 1_000_000];
  const records = await Promise.all(sizes.map((bytes) => makeRecord(bytes)));
  let fresh = 10_000;
  const curves: Curve[] = [
    {
      name: 'connections',
      unit: 'connections',
      how: `${perSecond} reads a second, spread over the keep-alive connections; each is a hit of 1 KB`,
      points: [1, 4, 16, 64, 256, 1_000].map((at) =>
        pointAt(at, { ...one, connections: at, kept: at, perSecond }),
      ),
    },
    {
      name: 'bodies',
      unit: 'bytes',
      how: `${connections} connections, as many as are answered; a record of over 256 KB is not cached, and read from PostgreSQL`,
      points: sizes.map((at, index) => pointAt(at, { ...one, paths: [records[index]!] })),
    },
    {
      name: 'tokens',
      unit: 'people',
      how: `${connections} connections, each request with the token of another user; each process caches 10,000 tokens. Each of 100,000 users sends at most one request, so no token is cached`,
      points: [10, 100, 1_000, 10_000, 100_000].map((at) => {
        if (at < 100_000) return pointAt(at, one, () => load.post(crowd(at)));
        return pointAt(at, other, () => load.post(all.slice(fresh, (fresh += seconds * 2_000))));
      }),
    },
  ];
  for (const curve of curves) {
    if (curve.name === 'tokens') {
      // Fills the token cache before the measurement.
      load.post(crowd(10_000));
      for (let asked = 0; asked < 10_000;) asked += (await ask(one)).perSecond * seconds;
    } else load.post(crowd(100));
    await inRotatingOrder(
      curve.points,
      rounds,
      async (point) => void point.rounds.push(await point.measure()),
    );
  }

  const settings = { rounds, seconds, connections, capacity, rateLimitScale: 1000 };
  // The measuring function is not part of the JSON.
  conclude('curves', [], { settings, curves }, await stackVersions());
} finally {
  await closeRecords();
  await stopAll();
}
