import { barChart } from './charts.ts';
import { round, table, verdicts, type Kept, type Section } from './section.ts';

interface RaceResult {
  name: string;
  does?: string;
  broken?: string;
  raced?: number;
  reads?: number;
  stale?: number;
  seconds?: number;
  troubles?: Record<string, number>;
  figures?: Record<string, number>;
}

const counted = (counts: Record<string, number> = {}): string =>
  Object.entries(counts)
    .map(([what, count]) => `${what} ${round(count)}`)
    .join(', ');

function race(kept: Kept) {
  const all = kept['results'] as RaceResult[];
  const whole = all.filter(({ broken }) => !broken);
  const rows = whole.map(({ name, raced, seconds, troubles, figures }) => [
    name,
    raced!,
    figures!['stale']!,
    figures!['hitsDuringClear']!,
    figures!['missesDuringClear']!,
    figures!['clears']!,
    figures!['refusedClears']!,
    seconds!,
    counted(troubles),
  ]);
  const troubled = whole.reduce((sum, { raced, troubles }) => sum + (counted(troubles) ? raced! : 0), 0);
  const broken = all.filter((each) => each.broken);
  const caught = broken.map(({ name, broken: what, reads, stale }) => [what!, name, reads!, stale!]);
  return [
    `${round(kept['raced'])} reads that used the cache while a clear of the same record was under way, ${round(troubled)} of them where something was done to Redis all the time; stale: ${whole.reduce((sum, { figures }) => sum + figures!['stale']!, 0)}. Seed ${kept['seed']}.`,
    table([
      ['', 'raced', 'stale', 'hits', 'misses', 'clears', 'refused', 's', 'what was done to Redis'],
      ...rows,
    ]),
    'The same race with one guard taken out:',
    table([['without', 'scenario', 'reads', 'stale'], ...caught]),
  ];
}

function events(kept: Kept) {
  const { settings, sent, sentAgain, secondsToSend, secondsToCommit } = kept;
  const { consumers, restarts, log, during, atTheEnd } = kept;
  return [
    `${round(settings.events)} events, one in a hundred poison. Records that such an event did not clear: ${during.wrong.length} of ${round(during.recordsGone)} looked at on the way, ${atTheEnd.old.length} in the end; losses that consumers told of: ${consumers.losses.length}; poison events: ${round(log.poison)}, failed jobs: ${round(log.failedJobs)}.`,
    table([
      ['', ''],
      ['sent', sent],
      ['of these again, as the answer was lost', sentAgain],
      [
        'seconds until all were sent, and all committed',
        `${round(secondsToSend)}, ${round(secondsToCommit)}`,
      ],
      ['consumers killed', consumers.kills],
      ['restarts', counted(restarts)],
      ['the log of failed jobs', JSON.stringify(log)],
    ]),
  ];
}

function schemathesis(kept: Kept) {
  const rows = Object.entries<Record<string, Record<string, unknown>>>(kept['roles']).map(([role, run]) => {
    const checks = run['checks'] as Record<string, Record<string, number>>;
    const sum = Object.values(checks).reduce((all, { success = 0 }) => all + success, 0);
    return [
      role,
      run['operations']!['tested'] as number,
      run['cases']!['generated'] as number,
      sum,
      (run['failures'] as unknown as unknown[]).length,
      run['filtered'] as unknown as number,
    ];
  });
  const { seed, examples, schemathesis: version } = kept['settings'];
  return [
    `Schemathesis ${version}, seed ${seed}, ${examples} cases an operation beside those that the document itself asks for:`,
    table([['as', 'operations', 'requests', 'checks', 'failures', 'false alarms'], ...rows]),
    'A check that has nothing to say of a request counts as one. What is a false alarm, and why, is in [hooks.py](../test/support/schemathesis/hooks.py).',
  ];
}

function secrets(kept: Kept) {
  const { secrets: used, searched } = kept;
  const rows = Object.entries<{ places: number; bytes: number }>(searched).map(
    ([place, { places, bytes }]) => [place, places, bytes],
  );
  return [
    `${used.total} secrets in ${round(used.forms)} forms (also encoded, and parts of them), found where they may not lie: ${kept['found']}`,
    table([['searched', 'places', 'bytes'], ...rows]),
  ];
}

function supplyChain(kept: Kept) {
  const licences = Object.entries<number>(kept['licences']).toSorted(([, a], [, b]) => b - a);
  const { audit, releases } = kept as unknown as {
    audit: { project: string; unknown?: string; advisories?: unknown[] }[];
    releases: { unknown: string[]; marked: string[]; old: string[] };
  };
  // A registry that does not answer is the place's, and no property of what was measured.
  const here = 'not known where this was measured';
  const old = releases.unknown.length > 0 ? here : releases.old.join(', ') || 'none';
  const unmaintained = `- direct dependencies without a release in 24 months: ${old}; marked as such, with their reasons: ${releases.marked.join(', ')}`;
  return [
    `${round(kept['packages'])} packages in two lock files. Their licences: ${licences.map(([name, count]) => `${name} ${count}`).join(', ')}. The lists: [licences](licences.md), [dependencies](dependencies.md).`,
    audit
      .map(
        ({ project, unknown, advisories = [] }) =>
          `- known holes in \`${project}\`: ${unknown ? `${here} (${unknown})` : advisories.length}`,
      )
      .concat(unmaintained, ...releases.unknown.map((what) => `- ${what}`))
      .join('\n'),
  ];
}

interface Holding {
  service: string;
  before: Record<string, number>;
  after: Record<string, number>;
}

function soak(kept: Kept) {
  const { minutes, faultEveryMs, seen, done, told, due, faults, held } = kept;
  const rows = (held as Holding[]).map(({ service, before, after }) => [
    service,
    before['heap']! / 2 ** 20,
    after['heap']! / 2 ** 20,
    `${before['files']} → ${after['files']}`,
    `${before['sockets']} → ${after['sockets']}`,
    `${before['handles']} → ${after['handles']}`,
    before['rss']! / 2 ** 20,
    after['rss']! / 2 ** 20,
  ]);
  const chores = Object.entries<Record<string, number>>(done).map(([name, counts]) => [
    name,
    counted(counts),
  ]);
  const text = [
    `${minutes} minutes, a fault every ${faultEveryMs / 1_000} s (${faults.length} in all): ${counted(seen.answers)}; ${round(seen.clears)} acknowledged clears, after which ${seen.stale.length} reads were stale; ${round(seen.events)} events, of which ${seen.lostEvents.length} were lost. Alerts that were told: ${told.join(', ') || 'none'}; due were at most: ${due.join(', ')}.`,
    table([
      ['', 'heap MB, early', 'late', 'open files', 'sockets', 'handles', 'process MB at most, early', 'late'],
      ...rows,
    ]),
    'What else was done meanwhile, and how it was answered:',
    table([['', ''], ...chores]),
  ];
  const bars = (held as Holding[]).map(({ service, before, after }) => ({
    label: service,
    value: (100 * after['heap']!) / before['heap']!,
    isOurs: true,
  }));
  return {
    text,
    charts: { soak: barChart('Heap in the last third of the quiet part, of the first', '%', bars) },
  };
}

const meanings: Record<string, string> = {
  forwarded: 'reached a service, as they may',
  wrong: 'reached one otherwise, or were answered so',
  victims: 'had a request behind them that was answered, too',
  reused: 'were followed by requests on connections that had served others',
  connections: 'connections to services',
  targets: 'targets',
  published: "of these by published lists (Debian's wfuzz, where it is installed)",
  attacks: 'published attacks',
  fuzzed: 'fuzzed tokens',
  slowestMs: 'the slowest answer, ms',
};

/** Counts as they are. */
function counts(kept: Kept) {
  const { date: _, machine: __, seed, ...figures } = kept;
  const rows = Object.entries<number>(figures).map(([name, count]) => [meanings[name] ?? name, count]);
  return [`Seed ${seed}.`, table([['', ''], ...rows])];
}

interface Clients {
  clients: number;
  firstClosed: number;
  lastClosed: number;
  limit: number;
  statuses: Record<string, number>;
}

const slowKinds: Record<string, string> = {
  headers: 'headers without an end',
  silent: 'nothing at all',
  json: 'JSON, a byte a second',
  upload: 'a file, a byte a second',
  refused: 'the same, without a place',
  reader: 'takes nothing of its 9 MB',
};

function slowClients({ slow, burst, idle }: Kept) {
  const kinds = Object.entries<Clients>(slow.clients).map(
    ([kind, { clients, firstClosed, lastClosed, limit, statuses }]) => [
      slowKinds[kind] ?? kind,
      clients,
      // It sees the end when it reads on.
      kind === 'reader' ? `by ${firstClosed}, when it was looked at` : `${firstClosed} to ${lastClosed}`,
      limit,
      counted(statuses),
    ],
  );
  const { calm, held, meanwhile } = slow.reads;
  return [
    verdicts([
      {
        isHeld: held.p95 < 500,
        text: `others' reads while all were there: p95 ${held.p95} ms, the goal is under 500`,
      },
      {
        isHeld: meanwhile.failures.length + meanwhile.refused === 0,
        text: `others' reads that were not answered: ${meanwhile.failures.length + meanwhile.refused} of ${meanwhile.reads}, the goal is none`,
      },
    ]),
    `At least ${slow.sockets} slow clients of five kinds for ${slow.heldMs / 1_000} s: who is closed comes back at once. Others' reads in this time: p50 ${held.p50} ms, p95 ${held.p95}, p99 ${held.p99}; without them ${calm.p50}, ${calm.p95} and ${calm.p99}. Uploads and readers that have no place are refused at once.`,
    table([['kind', 'clients', 'closed after s', 'limit s', 'answered'], ...kinds]),
    `180 who ask for 9 MB in half a second and take nothing of it are a load: they were answered ${counted(burst.statuses)}. Others' reads meanwhile: p50 ${burst.reads.p50} ms, p95 ${burst.reads.p95}, p99 ${burst.reads.p99}; ${burst.reads.refused} of ${burst.reads.reads} were told to come again, ${burst.reads.failures.length} failed; twenty in a row were answered ${burst.wellAfterMs} ms after it.`,
    `${idle.opened} idle connections: ${(idle.bytesEach / 1_000).toFixed(1)} KB of the gateway's memory each; others' reads meanwhile: p95 ${idle.reads.p95} ms of ${idle.reads.reads}, ${idle.reads.failures.length + idle.reads.refused} not answered; ${idle.after.sockets} sockets open after it.`,
  ];
}

interface Fault {
  fault: string;
  backMs: number;
}

function faultsTable({ dependencies }: Kept) {
  const rows = Object.entries<Fault[]>(dependencies).map(([name, list]) => [
    name,
    list.map(({ fault }) => fault).join(', '),
    Math.max(...list.map(({ backMs }) => backMs)) / 1_000,
  ]);
  return [
    'What each group of endpoints answers, and in which time, is in [faults](faults.md). How soon all was as before, by itself:',
    table([['dependency', 'faults', 'longest s'], ...rows]),
  ];
}

/** A section of test/faults/results; `pattern` selects its proof, if that has another name than the file. */
const proof = (title: string, name: string, tell: Section['tell'], pattern = name): Section => ({
  title,
  file: `faults/results/${name}.json`,
  repeat: `npm run proof -- ${pattern}`,
  tell,
});

/** Who tries to break it, and what came of it. */
export const hardness: Section[] = [
  proof('Reads raced against clears', 'race', race),
  proof('Events among kills', 'events', events),
  proof('An hour of faults', 'soak', soak),
  proof('Faults of dependencies', 'faults', faultsTable, 'faults-table'),
  proof('20,000 ways to write a path', 'paths', counts),
  proof('Requests framed wrongly', 'smuggling', counts),
  proof('Forged tokens at the gateway', 'tokens-gateway', counts, 'tokens'),
  proof('Forged tokens at the verifier', 'tokens-verifier', counts, 'tokens'),
  proof('Slow clients', 'slow-clients', slowClients),
  proof('What the contract says, as everybody', 'schemathesis', schemathesis),
  proof('Secrets', 'secrets', secrets),
  proof('Dependencies', 'supply-chain', supplyChain, 'audit'),
];
