import { barChart } from './bar-chart.ts';
import { judge as judgeCaches, type CacheResult, type ClearResult } from '../bench/cache/goals.ts';
import { judge, type Result } from '../bench/gateway/goals.ts';
import { heaviestOf, summaryOf, type Step } from '../bench/overload/goals.ts';
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
    `1 KB of JSON over ${connections} keep-alive connections, in ${rounds} alternating rounds of ${round(requests)} requests each, after a warm-up until two rounds agree, at most ten.${leftOut.length > 0 ? ` Not installed on this machine: ${leftOut.join(', ')}.` : ''}`,
    verdicts(judge(results)),
    barChart(
      'CPU of a gateway for each request, µs',
      rows.map(([label, value]) => [label, value]),
    ),
    table([['gateway', 'CPU µs a request', 'min', 'max', 'requests/s', 'p50 ms', 'p99 ms'], ...rows]),
    'Ratios are the medians of the ratios in each round; "rounds" has the lowest and the highest of them.',
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
    verdicts(judgeCaches(caches, clears, kept['together'])),
    barChart(
      'Stale reads in the race, %',
      caches.map(({ name, race: { stale, reads } }) => [name, (100 * stale) / reads]),
    ),
    'The columns show the cost of a hit, the number of database reads when 1,000 readers ask for one cold key (storm), and stale reads in a race of 6 s. The database is slowed down on purpose: each query waits 50 ms in the storm, and up to 10 ms after it has read the record in the race, so that many clears fall into this time. In the race 16 readers read four records without a pause, and four writers change and clear one each, about 30 to 40 times a second. With faster queries or rarer changes, fewer reads are stale:',
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
      (seen.due - seen.unsent) / seconds,
      capacity,
      seen.goodputInTime,
      seen.good?.p99 ?? 0,
      seen.firstRefused?.p99 ?? 'none',
      probed!.recovery,
    ]);
    const columns = 'load|connections|due/s|sent/s|capacity/s|in time/s|p99 ms';
    const head = [...columns.split('|'), firstRefusal, 'recovery ms'];
    return `**${name}**: ${does}. Capacity: ${round(capacities[0]!)} requests a second over ${few} connections. Each load lasts ${seconds} s. The peak is the capacity before and after it, or its replies 200 if they are more. A request that is due while every connection waits for a reply is not sent: "sent" is what the gateway got. p99 is that of the replies 200.\n\n${verdicts(list)}\n\n${table([head, ...rows])}`;
  });
  const rows = [{ ...loads[1]!, name: 'ours' }, ...(kept['others'] as Load[])].flatMap(({ name, steps }) =>
    heaviestOf(steps).map(({ connections, loads: each }) => {
      const { inTime, p99, firstRefusal: refusal, lost } = summaryOf(each);
      const sent = median(each.map(({ seen, capacity }) => (seen.due - seen.unsent) / seconds / capacity));
      return [name, connections, sent, `${round(inTime * 100)} %`, p99, refusal || 'none', lost];
    }),
  );
  const head = ['gateway', 'connections', 'sent × capacity', 'in time', 'p99 ms', firstRefusal, 'no reply'];
  const others =
    '**Other gateways** at three times their capacity, with the stub service: medians of three loads. The load generator sends a request only if a connection is free. Only nginx got three times its capacity, because it refuses at once and so frees connections; compare the rows with that in mind. fast-gateway has no limit for all callers together. nginx refuses above 80 % of the capacity measured before (limit_req), so it cannot answer more. Clients disconnect after 5 s.';
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
    `Calculated from the first row, not measured: with a core for each process, a gateway uses its whole core at ${perCore[0]} reads a second and a content-cache at ${perCore[1]}. Replies then wait without limit, so plan with half. Redis fills its core at ${perCore[2]} a second. The sum grows with the number of processes only while a read costs the same; in the rows above its cost grows, because the processes share cores.`,
  ];
}

/** The result file of a bench and the command that repeats it. */
const bench = (name: string) => ({ file: `bench/results/${name}.json`, repeat: `npm run bench -- ${name}` });

export const benchmarks: Section[] = [
  {
    title: 'Gateway comparison',
    ...bench('gateway'),
    notes: [
      'This gateway counts rate limits in its process and adds them to Redis every 200 ms. The other Node gateways wait for Redis with each request.',
      'Tried without benefit: http-proxy-middleware for all requests (1.6 times the CPU; uploads use it), undici with a pool (it can send a request twice), and one write for head and body.',
    ],
    render: gateway,
  },
  {
    title: 'Cache comparison',
    ...bench('cache'),
    notes: [
      'A hit of content-cache does more than the plain service: it checks revocations, parameters and leases, and counts and times each request. Express and its router take about 8 % of a hit, hashing the token 3 %, and no other function more than 3 %.',
      'A clear takes as long among a million keys as among 10,000 (p50). The CPU of Redis includes other work in these seconds, so the ratio differs from run to run: 0.83 and 8.08 in runs of 2026-11-25.',
      'A scan of a million keys takes Redis 7.0 between 0.5 and 1.1 s of CPU. Redis 7.4 filters while it scans and takes 0.4 to 0.6 s; docker-compose.yml has a newer version. KEYS is faster, but blocks all other clients, so it is not used.',
      'Not used: pages of 5,000 buckets instead of 1,000. A scan is 20 % faster, but each page blocks other clients for longer.',
    ],
    render: cache,
  },
  {
    title: 'Invalidation',
    ...bench('events'),
    notes: [
      'After about 10,000 calls V8 optimises the code of a call, in the gateway and in content-cache at the same time. With its default of four threads the compilers used both cores for 0.3 s, and the p99 of 12,000 calls was 73 to 81 ms. With one thread, as all processes have now (`--v8-pool-size=1`), it was 17 ms (2026-11-27). So 12,000 calls come before the measured calls: the figures are those of a process that has run for a while.',
      'With `sweep`, the default, a clear also scans all keys for those of other programs. Redis had 10,000 keys here; see [cache comparison](#cache-comparison) for a million. Clears that wait at the same time share a scan.',
      'Tried without benefit: processes pinned to cores, larger and fixed young generations of the heap, a garbage collector with one thread.',
    ],
    render: events,
  },
  {
    title: 'Unannounced changes',
    ...bench('changes'),
    notes: [
      'content-cache compares the changed records with the cache in the process that answers the reads. It pauses for 10 ms after each page of 100 changes: without the pauses 100,000 records took 6.3 s, but other reads took 2.4 times as long.',
    ],
    render: changes,
  },
  {
    title: 'Overload',
    ...bench('overload'),
    notes: [
      'The gateway refuses a request only when its queue is full, and then does not read the connection for 1 s, or for 1 to 4 s if the client did not wait for Retry-After. The clients here never wait, and disconnect after 5 s. A request that arrives in this pause is answered too late.',
      'So 6,000 such clients cause 1,800 to 2,200 refusals a second, whatever the capacity is. In a load with counters, 8,800 refusals came in the first 3.5 s, later 920 a second. Over 6,000 connections a refusal takes nearly as much CPU as a reply, over 2,000 a third.',
      'nginx refuses at a small part of the cost, but only above a limit that an operator has to know and set.',
      'The speed of this machine changes by a third within minutes, so each load is compared with the capacity before and after it, and the heaviest loads are sent three times. A run of 2026-11-27 with single loads of 20 s, when the machine was faster, gave 94 and 63 % for the platform and 64 and 53 % for the gateway. For the others, runs of 2026-11-27 and 28 differed by up to 85 percentage points.',
      'Tried with 6,000 connections: a pause of 3 s instead of 4 (42 % in time instead of 65 %, medians of four and six loads); queues of 0.25 and 0.3 s instead of 0.4 s (no difference); reading at most one in 350 of the paused connections every 10 ms instead of 40 (38 and 53 % in two loads, and clients gave up).',
      'Tried with 2,000 and 6,000 connections, loads of 8 and 12 s: a young generation of the heap of 32 instead of 16 MB (6 % fewer replies in time over 2,000, no difference over 6,000); a measured rate without the turns of the event loop in which more than 64 requests arrive (no difference).',
      'Tried with 2,000 and 6,000 connections: reading first the connections that were refused last, as the gateway does, answered 91 and 63 % in time; reading first those that were refused first, 72 and 65 % (medians of five loads of 8 s).',
      'Kept on 2026-11-27, measured together in turn with the version before, loads of 8 s: long pauses that end at different times, lists of replies that remove the oldest without moving the others, and requests without a body that Node ends at their head. Over 2,000 connections 83 % were in time instead of 74 % (medians of four loads). Over 6,000 it was 58 % instead of 57 %, of a peak that had grown by 9 % (medians of six loads); 6,979 a second were answered instead of 6,157.',
      'In one load of a run of 2026-11-27, 8 of 94,874 requests to the platform over 6,000 connections got no reply within 5 s. In this run and in nine more loads of 15 s every client got a reply.',
    ],
    render: overload,
  },
  {
    title: 'Several gateways and content-caches',
    ...bench('scale'),
    render: scale,
  },
];
