// `npm run bench -- curves`: what a read costs as the work around it grows: connections, the size of its record, the
// people who read, the routes of the contract. Each point is measured in turns with the others of its curve.
import { once } from 'node:events';
import { closeRecords, database, freshId } from '../../support/records.ts';
import { writeResult } from '../../support/results.ts';
import { cpuOf } from '../cpu.ts';
import { median } from '../percentiles.ts';
import { startHelper, stopAll } from '../gateway/processes.ts';
import { startLoad } from '../load/start.ts';
import { otherCore, pin, pinStand, platformCore, stackVersions, startStand, startTokens } from '../stand.ts';
import { measureAll, type Curve, type Point, type Round } from './points.ts';

const rounds = Number(process.env['CURVES_ROUNDS'] ?? 5);
const seconds = 2;
const warmUpSeconds = Number(process.env['CURVES_WARM_UP'] ?? 10);
/** Where nothing else is said: few enough that none is refused. */
const connections = 16;
/** A part of what can be answered: idle connections are what grows. */
const calm = 0.3;

const load = startLoad();

interface Asked {
  origin: string;
  path: string;
  pids: Record<string, number>;
  tokens?: readonly string[];
  connections?: number;
  /** 0: as many as are answered. */
  perSecond?: number;
}

async function ask({ origin, path, pids, perSecond = 0, ...asked }: Asked): Promise<Round> {
  const open = asked.connections ?? connections;
  const cpu = () => Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid)] as const);
  const before = Object.fromEntries(cpu());
  const kept = perSecond > 0 ? open : 0;
  const seen = await load.send({ origin, path, seconds, perSecond, kept, connections: open });
  const good = seen.statuses['200'] ?? 0;
  if (!seen.good) throw new Error(`${path}: ${JSON.stringify(seen.statuses)}`);
  return {
    cpu: Object.fromEntries(cpu().map(([name, us]) => [name, (us - before[name]!) / good])),
    perSecond: seen.goodput,
    times: seen.good,
    failed: seen.due - good,
  };
}

const pointAt = (at: number, asked: Asked, prepare?: () => void): Point => ({
  at,
  rounds: [],
  measure: () => {
    prepare?.();
    return ask(asked);
  },
});

/** A record whose reply has so many bytes. */
async function makeRecord(bytes: number): Promise<string> {
  const id = freshId();
  const text = 'x'.repeat(Math.max(1, bytes - 150));
  await database().query(
    `INSERT INTO content.record (model, id, title, body) VALUES ('pathway', $1, 'Measured', $2)`,
    [id, JSON.stringify({ text })],
  );
  return `/api/content/pathway/${id}`;
}

/** A gateway with so many routes more, in front of what costs nothing. */
async function startWide(extra: number, upstream: string) {
  const child = startHelper('gateway/testing/wide-gateway.ts', { EXTRA: String(extra), UPSTREAM: upstream });
  const [{ origin, token }] = (await once(child, 'message')) as [{ origin: string; token: string }];
  pin(child.pid!, platformCore);
  return { origin, token, pids: { gateway: child.pid! } };
}

const ms = (value: number) => value.toFixed(1).padStart(8);

function print({ name, unit, how, points }: Curve): void {
  console.log(`\n${name}: ${how}`);
  for (const { at, rounds: all } of points) {
    const of = (pick: (round: Round) => number) => median(all.map(pick));
    const names = Object.keys(all[0]!.cpu);
    const cpu = names.map((each) => `${each} ${of((round) => round.cpu[each]!).toFixed(0)} µs`).join(', ');
    const failed = all.reduce((sum, round) => sum + round.failed, 0);
    const told = failed > 0 ? `  ${failed} failed` : '';
    console.log(
      `  ${String(at).padStart(8)} ${unit.padEnd(12)} p50 ${ms(of(({ times }) => times.p50))} p99 ${ms(of(({ times }) => times.p99))} ms  ${cpu}${told}`,
    );
  }
}

try {
  const { sign, url: light } = await startTokens();
  const people = [10, 100, 1_000, 10_000, 100_000];
  // Of the last only as many as are sent: each is another one, which is what a memory of 10,000 sees of 100,000.
  const signed = 10_000 + rounds * seconds * 2_000;
  console.log(`Signing ${signed} tokens`);
  const all = Array.from({ length: signed }, (_, index) => sign(index + 1));
  const crowd = (count: number) => all.slice(0, Math.min(count, all.length));
  const stand = await startStand(light);
  // Who comes once only would drive the others out of the memory.
  const crowded = await startStand(light);
  for (const each of [stand, crowded]) pinStand(each);
  for (const pid of [process.pid, load.pid]) pin(pid, otherCore);
  const { gateway: origin, pids } = stand;
  const small = await makeRecord(1_000);
  const one = { origin, pids, path: small };

  load.use(crowd(100));
  for (const { gateway: own, pids: ownPids } of [crowded, stand])
    for (let second = 0; second < warmUpSeconds; second += seconds)
      await ask({ ...one, origin: own, pids: ownPids });
  const tries: number[] = [];
  for (let round = 0; round < 3; round += 1) tries.push((await ask(one)).perSecond);
  const capacity = median(tries);
  const perSecond = Math.max(20, Math.round(capacity * calm));

  const sizes = [1_000, 10_000, 100_000, 1_000_000];
  const records = await Promise.all(sizes.map((bytes) => makeRecord(bytes)));
  let fresh = 10_000;
  const curves: Curve[] = [
    {
      name: 'connections',
      unit: 'connections',
      how: `${perSecond} reads a second, in turns over so many kept connections; a hit of 1 KB`,
      points: [1, 4, 16, 64, 256, 1_000].map((at) => pointAt(at, { ...one, connections: at, perSecond })),
    },
    {
      name: 'bodies',
      unit: 'bytes',
      how: `${connections} connections, as many as are answered; a record of over 256 KB is not cached, and read from PostgreSQL`,
      points: sizes.map((at, index) => pointAt(at, { ...one, path: records[index]! })),
    },
    {
      name: 'tokens',
      unit: 'people',
      how: `${connections} connections, each request with the next person's token; each process remembers 10,000. Of 100,000 people each comes once at most, which is what such a memory sees of them`,
      points: people.map((at) => {
        if (at < 100_000) return pointAt(at, one, () => load.use(crowd(at)));
        return pointAt(at, { ...one, origin: crowded.gateway, pids: crowded.pids }, () =>
          load.use(all.slice(fresh, (fresh += seconds * 2_000))),
        );
      }),
    },
  ];
  for (const curve of curves) {
    if (curve.name === 'tokens') {
      // Whoever is in the memory at all is there before it is measured.
      load.use(crowd(10_000));
      for (let asked = 0; asked < 10_000;) asked += (await ask(one)).perSecond * seconds;
    } else load.use(crowd(100));
    await measureAll(curve, rounds);
    print(curve);
  }

  const wide = await Promise.all([1, 4, 16, 64].map((extra) => startWide(extra, light)));
  const routes: Curve = {
    name: 'routes',
    unit: 'more routes',
    how: `a gateway that counts no limits, its content-cache costs nothing; the route that is asked for comes after all that were added`,
    points: wide.map(({ origin: own, token, pids: ownPids }, index) =>
      pointAt([1, 4, 16, 64][index]!, { origin: own, path: '/api/content/pathway/1', pids: ownPids }, () =>
        load.use([token]),
      ),
    ),
  };
  for (const { measure } of routes.points) await measure();
  await measureAll(routes, rounds);
  print(routes);

  const kept = [...curves, routes].map(({ name, unit, how, points }) => ({
    name,
    unit,
    how,
    points: points.map(({ at, rounds: each }) => ({ at, rounds: each })),
  }));
  writeResult(
    'bench',
    'curves',
    {
      settings: { rounds, seconds, connections, capacity, rateLimitScale: 1000 },
      curves: kept,
    },
    await stackVersions(),
  );
} finally {
  await closeRecords();
  await stopAll();
}
