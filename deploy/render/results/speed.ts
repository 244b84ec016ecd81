import { barChart, lineChart } from './charts.ts';
import { judge, type Result } from '../../../test/bench/gateway/goals.ts';
import { median } from '../../../test/bench/percentiles.ts';
import { round, table, verdicts, type Kept, type Section } from './section.ts';

type Rounds = readonly Record<string, number>[];
const of = (rounds: Rounds, key: string): number => median(rounds.map((each) => each[key]!));

function gateway(kept: Kept) {
  const results = kept['results'] as Result[];
  const rows = results.map(({ name, hasDuties, rounds }) => {
    const each = rounds as unknown as Rounds;
    return [
      hasDuties ? name : `${name}, bare`,
      of(each, 'cpu'),
      Math.min(...each.map(({ cpu }) => cpu!)),
      Math.max(...each.map(({ cpu }) => cpu!)),
      of(each, 'perSecond'),
      of(each, 'p50'),
      of(each, 'p99'),
    ] as const;
  });
  const bars = rows.map(([label, value]) => ({ label, value, isOurs: label.startsWith('ours') }));
  const duties = results.filter(({ hasDuties }) => hasDuties).map(({ name, does }) => `- ${name}: ${does}`);
  const { connections, requests, leftOut = [] } = kept;
  const rounds = results[0]!.rounds.length;
  const text = [
    `1 KB of JSON over ${connections} kept connections, in ${rounds} rounds of ${round(requests)} requests each, in turns, after a warm-up until two rounds agree.${leftOut.length > 0 ? ` Left out, as this machine does not have it: ${leftOut.join(', ')}.` : ''}`,
    verdicts(judge(results)),
    table([['', 'CPU µs', 'least', 'most', 'a second', 'p50 ms', 'p99 ms'], ...rows]),
    kept['isCalm']
      ? ''
      : 'Rounds of the same differ by more than 15 %; the ratios are medians of those in a round.',
    'What each does with a request:',
    duties.join('\n'),
  ];
  return { text, charts: { gateway: barChart('CPU of a request in the gateway', 'µs', bars) } };
}

interface CacheResult {
  name: string;
  does: string;
  rounds: Rounds;
  storms: { one: { reads: number }[]; two: { reads: number }[] };
  race: { clears: number; reads: number; stale: number };
}

interface ClearResult {
  name: string;
  does: string;
  sizes: {
    keys: number;
    times: { count: number; p50: number; p99: number; max: number };
    redisCpu: number;
    ping: { max: number };
  }[];
}

function cache(kept: Kept) {
  const caches = kept['caches'] as CacheResult[];
  const clears = kept['clears'] as ClearResult[];
  const hits = caches.map(({ name, rounds, storms, race }) => [
    name,
    of(rounds, 'service'),
    of(rounds, 'redis'),
    of(rounds, 'gateway'),
    of(rounds, 'perSecond'),
    of(rounds, 'p50'),
    of(rounds, 'p99'),
    of(storms.one, 'reads'),
    of(storms.two, 'reads'),
    `${round(race.stale)} of ${round(race.reads)}`,
  ]);
  const sizes = clears.flatMap(({ name, sizes: each }) =>
    each.map(({ keys, times, redisCpu, ping }) => [
      name,
      keys.toLocaleString('en'),
      times.count,
      times.p50,
      // Of a few there is no hundredth.
      times.max,
      redisCpu,
      ping.max,
    ]),
  );
  const head = [
    '',
    'service µs',
    'Redis µs',
    'gateway µs',
    'a second',
    'p50 ms',
    'p99 ms',
    'storm, 1 process',
    '2 processes',
    'stale reads',
  ];
  const text = [
    verdicts(kept['verdicts']),
    'A hit, a storm of 1,000 readers of one cold key (how often the database is read), and a short race of readers with a writer who clears as that library says:',
    table([head, ...hits]),
    caches.map(({ name, does }) => `- ${name}: ${does}`).join('\n'),
    'One clear among so many keys; the last column is how long others waited for Redis at most:',
    table([['', 'keys', 'clears', 'p50 ms', 'max ms', "Redis' CPU µs", 'others wait ms'], ...sizes]),
  ];
  const bars = caches.map(({ name, race: { stale, reads } }) => ({
    label: name,
    value: (100 * stale) / reads,
    isOurs: name === 'ours',
  }));
  const lines = clears.map(({ name, sizes: each }) => ({
    label: name,
    points: each.map(({ keys, redisCpu }) => [keys, Math.log10(Math.max(1, redisCpu))] as const),
  }));
  return {
    text,
    charts: {
      stale: barChart('Stale reads in the same race', '%', bars),
      clears: lineChart("Redis' CPU of one clear", { x: 'keys', y: 'log10 of µs', isLog: true }, lines),
    },
  };
}

function events(kept: Kept) {
  const modes = ['none', 'sweep'] as const;
  const rows = modes.map((mode) => {
    const { throughput, events: delay, calls } = kept[mode];
    return [
      mode,
      throughput.perSecond,
      delay.times.p50,
      delay.times.p99,
      calls.times.p50,
      calls.times.p99,
    ] as const;
  });
  return [
    verdicts(kept['verdicts']),
    table([
      ['CACHE_UNMANAGED_KEYS', 'events a second', 'event p50 ms', 'p99', 'call p50 ms', 'p99'],
      ...rows,
    ]),
  ];
}

function overload(kept: Kept) {
  // oxlint-disable-next-line typescript/no-explicit-any
  const scenes = kept['scenes'] as any[];
  const { connections } = kept['settings'];
  const text = scenes.map(({ name, does, capacity, steps, verdicts: list }) => {
    // oxlint-disable-next-line typescript/no-explicit-any
    const rows = steps.map(({ multiple, perSecond, seen, probed }: any) => [
      `${multiple} ×`,
      perSecond,
      seen.goodput,
      seen.good?.p99 ?? 0,
      seen.refused?.p99 ?? 0,
      probed.recovery,
    ]);
    const head = [
      'load',
      'sent a second',
      'answered a second',
      'p99 ms',
      'refusal p99 ms',
      'well again after ms',
    ];
    return `${name} (${does}; ${round(capacity)} a second over ${connections.few} connections, in the steps over up to ${round(connections.many)}):\n\n${verdicts(list)}\n\n${table([head, ...rows])}`;
  });
  const lines = scenes.map(({ name, capacity, steps }) => ({
    label: name,
    // oxlint-disable-next-line typescript/no-explicit-any
    points: steps.map(({ multiple, seen }: any) => [multiple, (100 * seen.goodput) / capacity] as const),
  }));
  const axes = { x: 'load, as a multiple of the capacity', y: 'answered, % of the capacity' };
  return { text, charts: { overload: lineChart('What is answered when more comes', axes, lines) } };
}

interface Curve {
  name: string;
  unit: string;
  how: string;
  points: {
    at: number;
    rounds: {
      cpu: Record<string, number>;
      perSecond: number;
      times: Record<string, number>;
      failed: number;
    }[];
  }[];
}

function curves(kept: Kept) {
  const list = kept['curves'] as Curve[];
  const text = list.map(({ name, unit, how, points }) => {
    const rows = points.map(({ at, rounds }) => [
      at.toLocaleString('en'),
      median(rounds.map(({ cpu }) => cpu['gateway'] ?? 0)),
      median(rounds.map(({ cpu }) => cpu['content-cache'] ?? 0)),
      median(rounds.map(({ perSecond }) => perSecond)),
      median(rounds.map(({ times }) => times['p50'] ?? 0)),
      median(rounds.map(({ times }) => times['p99'] ?? 0)),
      rounds.reduce((sum, { failed }) => sum + failed, 0),
    ]);
    const head = [unit, 'gateway µs', 'content-cache µs', 'a second', 'p50 ms', 'p99 ms', 'not answered'];
    return `**${name}**: ${how}.\n\n${table([head, ...rows])}`;
  });
  const notAnswered = 'Not answered is also what was never sent, as no connection was free when it was due.';
  const charts = Object.fromEntries(
    list.map(({ name, unit, points }) => {
      const line = (process: string) => ({
        label: process,
        points: points.map(
          ({ at, rounds }) => [at, median(rounds.map(({ cpu }) => cpu[process] ?? 0))] as const,
        ),
      });
      const axes = { x: unit, y: 'CPU µs a request', isLog: true };
      return [`curve-${name}`, lineChart(`Cost by ${name}`, axes, [line('gateway'), line('content-cache')])];
    }),
  );
  return { text: [notAnswered, ...text], charts };
}

function memory(kept: Kept) {
  const samples = kept['samples'] as Record<string, { heap: number }[]>;
  const lines = Object.entries(samples).map(([label, list]) => ({
    label,
    points: list.map(({ heap }, index) => [index + 1, heap / 1e6] as const),
  }));
  const { minutes, perSecond } = kept['settings'];
  const wrong = Object.values<number>(kept['errors']).reduce((sum, count) => sum + count, 0);
  const text = [
    `${minutes} minutes of a mix of ${perSecond} requests a second, for 50 s of each (${round(kept['sent'])} in all, ${wrong} not answered as they should be):`,
    verdicts(kept['verdicts']),
  ];
  const axes = { x: 'minutes', y: 'MB in use after a collection' };
  return { text, charts: { memory: lineChart('Heap of each process', axes, lines) } };
}

/** What a bench keeps, and how it is repeated. */
const bench = (name: string) => ({ file: `bench/results/${name}.json`, repeat: `npm run bench -- ${name}` });

/** Speed, beside what a user would pick instead. */
export const speed: Section[] = [
  {
    title: 'The gateway beside others',
    ...bench('gateway'),
    why: [
      'Why: a quarter of our CPU is three writes a request (to the client 12 %, to the service 8 %, to Redis 3 %), which the others have, too; garbage collection is 8 %.',
      'What we have more is the router and its six steps (7 %), CORS and the security headers (5 %), the check of the target, the SHA-256 under which a token is remembered (1.5 %), and a time limit, a span and an observation for each request.',
      'What was tried: http-proxy-middleware for all (all in all 1.6 times as much CPU; uploads keep it), commands to Redis one by one instead of those of a turn in one write (12 % more), undici with a pool (it resends what may have been done; each connection is a client of its own now); requests and replies that Node makes with the prototypes which express would give them, and bodies that go in one write with their head: no difference beyond that between two runs of the same, which is up to a fifth.',
    ].join(' '),
    tell: gateway,
  },
  {
    title: 'The cache beside others',
    ...bench('cache'),
    why: [
      'Why: to go through a million keys with SCAN and MATCH takes Redis 7.0 between 730 and 880 ms of its own CPU; 7.4 filters while it goes and takes 410 to 590 here, and docker-compose.yml has a newer one still.',
      'KEYS takes 210 and nobody else is answered meanwhile, so it is not used.',
      'What was tried: pages of 5,000 buckets instead of 1,000, which takes a fifth off a sweep, and patterns that leave out other models where all clears that wait are of one.',
    ].join(' '),
    tell: cache,
  },
  {
    title: 'Invalidation',
    ...bench('events'),
    why: [
      'Why: at 500 calls a second the gateway, content-cache, Redis, PostgreSQL, Kafka and the load together take more than half of both cores, and whoever is due waits for a core: in a profile the longest stretches of work, of 20 to 70 ms, are collections of garbage and small functions that stood still half-way: each process was taken off its core four to nine hundred times a second.',
      'What was tried: processes held on cores, larger and steadier young generations of the heap, a collector of one thread: no difference beyond that between two runs of the same.',
    ].join(' '),
    tell: events,
  },
  {
    title: 'Overload',
    ...bench('overload'),
    why: [
      "Why: a refusal costs what any reply of Node's HTTP server costs, 31 µs here for a bare one, and twice that with two thousand connections that each bring a request now and then; at three times the capacity there are two refusals for each request that is answered.",
      'Refusals wait for the turn of the event loop and for the core, which the gateway shares with content-cache, Redis and PostgreSQL; the slowest ones are those of new connections.',
      'What was tried: to refuse from 6 ms of lateness and with 32 under way instead of 20 and 64: half of the refusals came within 26 ms instead of 47, and fewer requests were answered by a third; 16 listening sockets instead of one, without which new clients waited for seconds.',
      'While it has less than four tenths of a core it lets in 256 instead of 64: with 64, 313 of 12,091 reads were refused while containers were replaced beside it on two cores at 200 reads a second, with 256 none of 24,367. The slowest refusals of a beginning overload are later for that.',
    ].join(' '),
    tell: overload,
  },
  {
    title: 'Cost as work grows',
    ...bench('curves'),
    tell: curves,
  },
  { title: 'Memory', ...bench('memory'), tell: memory },
];
