import { barChart } from './bar-chart.ts';
import type { CacheResult, ClearResult } from '../bench/cache/goals.ts';
import { judge, type Result } from '../bench/gateway/goals.ts';
import { shareInTime, type Step } from '../bench/overload/goals.ts';
import { median } from '../bench/percentiles.ts';
import type { Round } from '../bench/test-system.ts';
import { round, table } from '../support/table.ts';
import { verdicts, type StoredResult, type Section, type Verdict } from './section.ts';

const of = <Key extends string>(rounds: readonly Record<Key, number>[], key: Key): number =>
  median(rounds.map((each) => each[key]));

function gateway(kept: StoredResult) {
  const results = kept['results'] as Result[];
  const rows = results.map(({ name, hasDuties, rounds }) => {
    const all = rounds.map(({ cpu }) => cpu);
    return [
      hasDuties ? name : `${name}, bare`,
      median(all),
      Math.min(...all),
      Math.max(...all),
      of(rounds, 'perSecond'),
      of(rounds, 'p50'),
      of(rounds, 'p99'),
    ] as const;
  });
  const duties = results.filter(({ hasDuties }) => hasDuties).map(({ name, does }) => `- ${name}: ${does}`);
  const { connections, requests, leftOut = [] } = kept;
  const rounds = results[0]!.rounds.length;
  return [
    `1 KB of JSON over ${connections} keep-alive connections, in ${rounds} alternating rounds of ${round(requests)} requests each, after a warm-up until two rounds agree.${leftOut.length > 0 ? ` Not installed on this machine: ${leftOut.join(', ')}.` : ''}`,
    verdicts(judge(results)),
    barChart(
      'CPU of a gateway for each request, µs',
      rows.map(([label, value]) => [label, value]),
    ),
    table([['gateway', 'CPU µs a request', 'min', 'max', 'requests/s', 'p50 ms', 'p99 ms'], ...rows]),
    kept['isCalm']
      ? ''
      : 'Rounds of the same gateway differ by more than 15 %. Ratios are the medians of the ratios in each round.',
    '"bare" forwards only. The others do this with each request:',
    duties.join('\n'),
  ];
}

function cache(kept: StoredResult) {
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
      // With few clears there is no 99th percentile.
      times.max,
      redisCpu,
      ping.max,
    ]),
  );
  const costs = 'service µs|Redis µs|gateway µs|reads/s|p50 ms|p99 ms';
  const head = `cache|${costs}|database reads in a storm, 1 process|2 processes|stale reads`.split('|');
  return [
    verdicts(kept['verdicts']),
    barChart(
      'Stale reads in the race, %',
      caches.map(({ name, race: { stale, reads } }) => [name, (100 * stale) / reads]),
    ),
    'The columns show the cost of a hit, the number of database reads when 1,000 readers ask for one cold key (storm), and stale reads in a short race of readers against a writer that clears as the library documents:',
    table([head, ...hits]),
    caches.map(({ name, does }) => `- ${name}: ${does}`).join('\n'),
    'One clear among a number of keys. The last column is the longest wait of other Redis clients:',
    table([
      ['clear', 'keys', 'clears', 'p50 ms', 'max ms', 'Redis CPU µs', 'max wait of others ms'],
      ...sizes,
    ]),
  ];
}

function events(kept: StoredResult) {
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
      ['CACHE_UNMANAGED_KEYS', 'events/s', 'event p50 ms', 'event p99 ms', 'call p50 ms', 'call p99 ms'],
      ...rows,
    ]),
  ];
}

function changes(kept: StoredResult) {
  const { single, bulk, reads } = kept;
  return [
    `${round(single.count)} cached records, each changed by one UPDATE, at ${kept['settings'].perSecond} a second; then ${round(bulk.rows)} records changed by one UPDATE, ${round(bulk.cached)} of them cached. Nothing is announced.`,
    verdicts(kept['verdicts']),
    table([
      ['', 'p50 ms', 'p99 ms', 'max ms'],
      ['from the commit to the cleared record', single.p50, single.p99, single.max],
      ['other reads before the large change', reads.before.p50, reads.before.p99, reads.before.max],
      ['other reads during the large change', reads.during.p50, reads.during.p99, reads.during.max],
    ]),
  ];
}

const firstRefusal = 'first refusal p99 ms';

interface Load {
  name: string;
  does: string;
  capacities: number[];
  steps: Step[];
  verdicts: Verdict[];
}

function overload(kept: StoredResult) {
  const { connections: few, seconds } = kept['settings'];
  const loads = kept['scenes'] as Load[];
  const scenes = loads.map(({ name, does, capacities, steps, verdicts: list }) => {
    const rows = steps.map(({ multiple, connections, perSecond, capacity, seen, probed }) => [
      `${multiple} ×`,
      connections,
      perSecond,
      capacity,
      seen.goodputInTime,
      seen.good?.p99 ?? 0,
      seen.firstRefused?.p99 ?? 0,
      probed!.recovery,
    ]);
    const head = [
      'load',
      'connections',
      'due/s',
      'capacity/s',
      'in time/s',
      'p99 ms',
      firstRefusal,
      'recovery ms',
    ];
    return `**${name}**: ${does}. Capacity: ${round(capacities[0]!)} requests a second over ${few} connections. Each load lasts ${seconds} s.\n\n${verdicts(list)}\n\n${table([head, ...rows])}`;
  });
  const rows = [{ ...loads[1]!, name: 'ours' }, ...(kept['others'] as Load[])].flatMap(({ name, steps }) =>
    steps
      .slice(-2)
      .map((step) => [
        name,
        step.connections,
        `${round(shareInTime(step) * 100)} %`,
        step.seen.good?.p99 ?? 0,
        step.seen.firstRefused?.p99 ?? 0,
        step.seen.gaveUp + step.seen.broken,
      ]),
  );
  const head = ['gateway', 'connections', 'in time', 'p99 ms', firstRefusal, 'no reply'];
  const others =
    '**Other gateways** at three times their capacity, with the stub service. fast-gateway has no limit for all callers together; nginx refuses above 80 % of its capacity (limit_req). Clients disconnect after 5 s.';
  return [...scenes, `${others}\n\n${table([head, ...rows])}`];
}

function scale(kept: StoredResult) {
  const sets = kept['sets'] as { size: number; rounds: Round[] }[];
  /** CPU of all processes of a role for each read in µs. */
  const cpuOf = (rounds: readonly Round[], role: string) =>
    median(
      rounds.map(({ cpu }) =>
        Object.entries(cpu).reduce((sum, [name, us]) => sum + (name.startsWith(role) ? us : 0), 0),
      ),
    );
  const roles = ['gateway', 'content-cache', 'redis', 'load'];
  const rows = sets.map(({ size, rounds }) => [
    `${size} of each`,
    median(rounds.map(({ perSecond }) => perSecond)),
    median(rounds.map(({ perSecond }, round) => perSecond / sets[0]!.rounds[round]!.perSecond)),
    median(rounds.map(({ times }) => times['p95']!)),
    ...roles.map((role) => cpuOf(rounds, role)),
    median(rounds.map((each) => (each.perSecond * cpuOf([each], '')) / 1e6)),
  ]);
  const columns = 'reads/s|ratio|p95 ms|gateways µs|content-caches µs|Redis µs|load generator µs|cores busy';
  const perCore = roles.map((role) => round(1e6 / cpuOf(sets[0]!.rounds, role)));
  const { connections, seconds } = kept['settings'];
  return [
    `Hits of 1 KB over ${connections} connections at full load, spread over the gateways in turn. Each gateway spreads its reads over the content-caches. Medians of ${sets[0]!.rounds.length} alternating rounds of ${round(seconds)} s. CPU is the time that all processes of a role use for each read.`,
    verdicts(kept['verdicts']),
    table([['gateways and content-caches', ...columns.split('|')], ...rows]),
    `This machine has ${kept.machine.cores} cores. A core for each process (gateways, content-caches, Redis, load generator) needs ${sets.map(({ size }) => `${2 * size + 2} for ${size} of each`).join(', ')}. On fewer cores the processes share the cores, and the ratio shows what more processes cost, not what they gain.`,
    `Calculated from the first row, not measured: with a core for each process, a gateway carries ${perCore[0]} reads a second and a content-cache ${perCore[1]}. The sum grows with the number of processes until Redis fills its core at ${perCore[2]} a second.`,
  ];
}

/** The result file of a bench and the command that repeats it. */
const bench = (name: string) => ({ file: `bench/results/${name}.json`, repeat: `npm run bench -- ${name}` });

export const benchmarks: Section[] = [
  {
    title: 'Gateway comparison',
    ...bench('gateway'),
    why: [
      '**Why:** this gateway counts rate limits in its process and adds them to Redis every 200 ms, while the other Node gateways wait for Redis with each request. Before, and with express for every step of a request, it took 1.45 times the CPU of fast-gateway (2026-11-22).',
      'Tried without benefit: http-proxy-middleware for all requests (1.6 times the CPU; uploads use it), undici with a pool (it can send a request twice), prototypes as express sets them, and one write for head and body (no difference beyond the 20 % between runs).',
    ].join(' '),
    render: gateway,
  },
  {
    title: 'Cache comparison',
    ...bench('cache'),
    why: [
      '**Why:** a hit of content-cache does more than the plain service: it checks revocations, parameters and leases, and counts and times each request. Measured without the gateway in one run of five rounds, asking INFO for one section instead of two, one HMGET of four fields, and writing the head of a reply at once took Redis from 2.63 to 1.71 times, and content-cache from 1.53 to 1.34 times the plain service. No single function of content-cache takes more than 3 % of the rest; express and its router take about 8 %, hashing the token 3 %. Since then the signal of a call, 3 % of a hit, is only created for handlers that use it.',
      'During the clears among a million keys Redis had other work: a clear took 1.1 ms from end to end, which is less than the 1.5 ms of CPU that are counted for it, and no more than among 10,000 keys (1.2 ms). In the run before, on the same day, the ratio was 0.83.',
      'Scanning a million keys with SCAN and MATCH takes Redis 7.0 between 730 and 880 ms of CPU, and 1,100 ms in this run, in which the machine was slower. Redis 7.4 filters while it scans and takes 410 to 590 ms; docker-compose.yml has a newer version.',
      'KEYS takes 210 ms, but blocks all other clients, so it is not used.',
      'Tried: pages of 5,000 buckets instead of 1,000, which makes a scan 20 % faster, and patterns that leave out other models if all waiting clears are for one model.',
    ].join(' '),
    render: cache,
  },
  {
    title: 'Invalidation',
    ...bench('events'),
    why: [
      '**Why:** this machine was half as fast as on 2026-11-22, when a run cleared 26,154 events a second and a call took 52 ms (p99), 20 times the bare Node server (2.6 ms). At that time the gateway stopped for 25 to 45 ms every 2.3 s: a young garbage collection copied 11 of 44 MB, because a getter, a WeakMap and a Set kept each finished request until a full collection. Now it takes 2 to 8 ms. In three alternating rounds on a busy machine the p99 of calls was 60, 110 and 33 ms instead of 106, 199 and 38 ms (bare Node server: 3.3, 2.9 and 2.5 ms).',
      'The rest: calls over 30 ms coincide with a full collection in the gateway or content-cache (13 to 45 ms), with a pause of the load generator, or with stretches in which all processes wait for a core. A call takes 2.1 ms of CPU in all processes, and these use 61 to 69 % of both cores; a call waits 0.9 ms for a core on average.',
      'On 2026-11-25, also with the slow machine (14,256 events a second), a run of this bench had a p99 of 133 ms, 63 times that of the bare server. In shorter runs of 10 s calls took p99 30 to 53 ms through the gateway, and 4 to 38 ms (median 8) directly at content-cache, with and without Kafka. A gateway with a stub service behind it had no full collection in 20 s of such calls.',
      'Tried without benefit: processes pinned to cores, larger and fixed young generations of the heap, a collector with one thread.',
    ].join(' '),
    render: events,
  },
  {
    title: 'Unannounced changes',
    ...bench('changes'),
    why: '**Why:** content-cache compares the changed records with the cache in the process that answers the reads, and PostgreSQL writes the change on the same two cores. Between two pages of 100 changes it pauses for 10 ms. Without the pauses, 100,000 records took 6.3 s, but other reads took 2.4 times as long. Two comparisons at a time instead of 8 helped too. One at a time would be slower than the goal if a command to Redis takes 0.5 ms.',
    render: changes,
  },
  {
    title: 'Overload',
    ...bench('overload'),
    why: [
      '**Why:** the gateway spends a third as much CPU on a refusal as on a reply over few connections, and nearly as much as on a reply over 6,000: while it sent 800 refusals a second, it sent 3,200 replies, and with 2,300 refusals 1,700. A client that ignores Retry-After is refused every 4 s, so 6,000 such clients cause up to 1,500 refusals a second. This number does not depend on the capacity: a slow machine spends a larger share of its time on refusals. Two other causes: the gateway does not read a refused connection for 1 or 4 s, so requests that arrive in this pause are answered too late, and thousands of connections need memory. Clients give up after 5 s, so the pause cannot be much longer. It was 3 s in the tables above. Tried alternately on 2026-11-27 with loads of 20 s of the gateway over 6,000 connections: with 3 s 37 to 55 % were answered in time (median of four 42 %), with 4 or 4.2 s 49 to 75 % (median of six 65 %), and no client gave up. Queues of 0.25 and 0.3 s instead of 0.4 s made no difference beyond the noise. nginx refuses at a small part of the cost, but only above a limit that an operator has to know and set.',
      'Tried in five alternating rounds of 8 s of the gateway, median for 2,000 and 6,000 connections: reading the connections that were refused last first, and only as many as the queue has room for, answered 91 and 63 % of the capacity in time, with 0.23 and 0.83 refusals for each reply. Reading the connections that were refused first before the others, and refusing the requests that they had sent in the pause, answered 72 and 65 %, with 0.48 and 1.17 refusals.',
      'The speed of this machine changes by a third within minutes. So each load is compared with the capacity before and after it; nevertheless three runs of this bench differed by up to 27 percentage points. Earlier results compared with the capacity before the first load. On 2026-11-26, with the rate measured in short queues too, a run without nginx answered in time 73 and 60 % of the peak of the platform, and 72 and 53 % of that of the gateway, over 2,000 and 6,000 connections. At 1 × it answered 1,089 of 1,359 and 2,811 of 3,246 a second in time. On 2026-11-27, with a longer queue for a gateway that was idle a second before, a run without nginx answered 73 and 55 % and 89 and 52 %; at 1 × 670 of 672 and 1,734 of 3,211. In it first refusals of the gateway took up to 211 and 473 ms (p99), health up to 166 and 727 ms, and afterwards 82 % of the rate before was answered.',
    ].join(' '),
    render: overload,
  },
  {
    title: 'Several gateways and content-caches',
    ...bench('scale'),
    render: scale,
  },
];
