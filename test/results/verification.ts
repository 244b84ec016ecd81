import type { Observation } from '../faults/table.ts';
import { barChart } from './bar-chart.ts';
import { round, table } from '../support/table.ts';
import { verdicts, type StoredResult, type Section } from './section.ts';

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

function race(kept: StoredResult) {
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
    `${round(kept['raced'])} reads used the cache while a clear of the same record was in progress; ${round(troubled)} of them in scenarios that inject faults into Redis again and again. Reads that bypassed the cache, because Redis was unavailable, are not counted. Stale reads: ${whole.reduce((sum, { figures }) => sum + figures!['stale']!, 0)}. Seed ${kept['seed']}. Redis is real. The readers and writers call the cache in two threads, without HTTP, and the database is simulated in memory.`,
    table([
      'scenario|raced reads|stale|hits|misses|clears|refused clears|seconds|faults of Redis'.split('|'),
      ...rows,
    ]),
    'The same race with one guard of the protocol removed, as a check that the race finds stale reads:',
    table([['removed guard', 'scenario', 'reads', 'stale'], ...caught]),
  ];
}

function events(kept: StoredResult) {
  const { settings, sent, sentAgain, secondsToSend, secondsToCommit } = kept;
  const { consumers, restarts, log, during, atTheEnd } = kept;
  return [
    `${round(settings.events)} events, of which one in a hundred was invalid. Records that an event did not clear: ${during.wrong.length} of ${round(during.recordsGone)} checked during the run, ${atTheEnd.old.length} at the end. Losses reported by consumers: ${consumers.losses.length}. Invalid events: ${round(log.poison)}, failed jobs: ${round(log.failedJobs)}.`,
    table([
      ['quantity', 'value'],
      ['events sent', sent],
      ['sent again, because the reply was lost', sentAgain],
      [
        'seconds until all were sent, until all were committed',
        `${round(secondsToSend)}, ${round(secondsToCommit)}`,
      ],
      ['consumers killed', consumers.kills],
      ['restarts', counted(restarts)],
      [
        'messages in the topic, produced twice, invalid, failed jobs',
        [log.messages, log.producedTwice, log.poison, log.failedJobs].map(round).join(', '),
      ],
    ]),
  ];
}

function schemathesis(kept: StoredResult) {
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
    `Schemathesis ${version}, seed ${seed}, ${examples} generated cases for each operation, besides the examples of the document:`,
    table([['caller', 'operations', 'requests', 'checks', 'failures', 'false alarms'], ...rows]),
    'Checks that do not apply to a request are counted too. [hooks.py](../../test/support/schemathesis/hooks.py) defines the false alarms with their reasons.',
  ];
}

function secrets(kept: StoredResult) {
  const { secrets: used, searched } = kept;
  const rows = Object.entries<{ places: number; bytes: number }>(searched).map(
    ([place, { places, bytes }]) => [place, places, bytes],
  );
  return [
    `${used.total} secrets in ${round(used.forms)} forms (plain, encoded, and parts of them). Found where they must not be: ${kept['found']}.`,
    table([['searched', 'files or tables', 'bytes'], ...rows]),
  ];
}

function supplyChain(kept: StoredResult) {
  const audits = kept['audit'] as { project: string; unknown?: string; vulnerable?: string[] }[];
  const lines = audits.map(
    ({ project, unknown, vulnerable = [] }) =>
      // An unreachable registry is a property of the network, not of the packages.
      `- Known vulnerabilities in \`${project}\`: ${unknown ? `unknown, because the registry did not answer (${unknown})` : vulnerable.join(', ') || 'none'}`,
  );
  return [lines.join('\n'), 'See [licences](licences.md) and [dependencies](dependencies.md).'];
}

interface Holding {
  service: string;
  before: Record<string, number>;
  after: Record<string, number>;
}

const parts = (what: string) => [`${what}, first third`, `${what}, last third`];

function soak(kept: StoredResult) {
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
  return [
    `${minutes} minutes with a fault every ${faultEveryMs / 1_000} s (${faults.length} faults). Replies to reads: ${counted(seen.answers)}. After ${round(seen.clears)} acknowledged clears ${seen.stale.length} reads were stale. Of ${round(seen.events)} events ${seen.lostEvents.length} were lost. Alerts sent: ${told.join(', ') || 'none'}; allowed: ${due.join(', ')}.`,
    table([
      ['process', ...parts('heap MB'), 'open files', 'sockets', 'handles', ...parts('max RSS MB')],
      ...rows,
    ]),
    barChart(
      'Heap in the last third, % of the first third',
      (held as Holding[]).map(({ service, before, after }) => [
        service,
        (100 * after['heap']!) / before['heap']!,
      ]),
    ),
    'Other requests in that hour, with their replies:',
    table([['request', 'replies'], ...chores]),
  ];
}

const meanings: Record<string, string> = {
  forwarded: 'valid and forwarded to a service',
  wrong: 'wrongly forwarded or answered',
  victims: 'followed by a second request on the same connection, which was answered correctly',
  reused: 'followed by requests on reused upstream connections',
  connections: 'connections to services',
  targets: 'targets',
  attacks: 'published attacks',
  fuzzed: 'fuzzed tokens',
  slowestMs: 'slowest reply, ms',
};

function counts(kept: StoredResult) {
  const { date: _, machine: __, seed, ...figures } = kept;
  const rows = Object.entries<number>(figures).map(([name, count]) => [meanings[name] ?? name, count]);
  return [`Seed ${seed}.`, table([['quantity', 'value'], ...rows])];
}

interface Clients {
  clients: number;
  firstClosed: number;
  lastClosed: number;
  limit: number;
  statuses: Record<string, number>;
}

const slowKinds: Record<string, string> = {
  headers: 'never ends its headers',
  silent: 'sends nothing',
  json: 'sends JSON, one byte a second',
  upload: 'uploads a file, one byte a second',
  refused: 'uploads beyond the limit of uploads',
  reader: 'does not read its 9 MB',
};

function slowClients({ slow, burst, idle }: StoredResult) {
  const kinds = Object.entries<Clients>(slow.clients).map(
    ([kind, { clients, firstClosed, lastClosed, limit, statuses }]) => [
      slowKinds[kind] ?? kind,
      clients,
      // The client notices the end of the connection only when it reads again.
      kind === 'reader' ? `before ${firstClosed}, when it read again` : `${firstClosed} to ${lastClosed}`,
      limit,
      counted(statuses),
    ],
  );
  const { calm, held, meanwhile } = slow.reads;
  return [
    verdicts([
      {
        isHeld: held.p95 < 500,
        text: `reads of other clients meanwhile: p95 ${held.p95} ms; the goal is under 500`,
      },
      {
        isHeld: meanwhile.failures.length + meanwhile.refused === 0,
        text: `reads of other clients without a reply: ${meanwhile.failures.length + meanwhile.refused} of ${meanwhile.reads}; the goal is 0`,
      },
    ]),
    `At least ${slow.sockets} slow clients of five kinds for ${slow.heldMs / 1_000} s; a closed client reconnects immediately. Reads of other clients: p50 ${held.p50} ms, p95 ${held.p95} ms, p99 ${held.p99} ms; without slow clients ${calm.p50}, ${calm.p95} and ${calm.p99} ms. Uploads and readers beyond the limits are refused without waiting.`,
    table([['slow client', 'clients', 'closed after s', 'limit s', 'replies'], ...kinds]),
    `A burst of 180 clients that request 9 MB within half a second and read nothing slows others down. Their replies: ${counted(burst.statuses)}. Reads of other clients: p50 ${burst.reads.p50} ms, p95 ${burst.reads.p95} ms, p99 ${burst.reads.p99} ms; ${burst.reads.refused} of ${burst.reads.reads} were refused, ${burst.reads.failures.length} failed. Twenty consecutive reads succeeded ${burst.wellAfterMs} ms after the burst.`,
    `${idle.opened} idle connections use ${(idle.bytesEach / 1_000).toFixed(1)} KB of memory each in the gateway. Reads of other clients: p95 ${idle.reads.p95} ms of ${idle.reads.reads} reads, ${idle.reads.failures.length + idle.reads.refused} without a reply. Sockets of the gateway: ${idle.before.sockets} before, ${idle.after.sockets} afterwards.`,
  ];
}

function forgottenPassword({ requests, area, p50Ms }: StoredResult) {
  return [
    verdicts([
      {
        isHeld: Math.max(area, 1 - area) <= 0.55,
        text: `area under the ROC curve of the durations: ${area.toFixed(3)}; 0.5 reveals nothing, and the goal is at most 0.55`,
      },
    ]),
    `${round(requests)} requests for a new password in turn: with the email of a user, who gets a mail, and with an unknown email. Median duration: ${p50Ms.known} ms and ${p50Ms.unknown} ms.`,
  ];
}

function faultsTable({ dependencies }: StoredResult) {
  const rows = Object.entries<Observation[]>(dependencies).map(([name, list]) => [
    name,
    list.map(({ fault }) => fault).join(', '),
    Math.max(...list.map(({ backMs }) => backMs)) / 1_000,
  ]);
  return [
    '[Failure modes](../operations/failure-modes.md) lists the replies during each fault. The table shows the longest recovery without intervention:',
    table([['dependency', 'faults', 'longest recovery s'], ...rows]),
  ];
}

/** A section of test/faults/results; `pattern` selects its proof, if that has another name than the file. */
const proof = (title: string, name: string, tell: Section['render'], pattern = name): Section => ({
  title,
  file: `faults/results/${name}.json`,
  repeat: `npm run proof -- ${pattern}`,
  render: tell,
});

export const verification: Section[] = [
  proof('Reads raced against clears', 'race', race),
  proof('Events while processes are killed', 'events', events),
  proof('An hour of faults', 'soak', soak),
  proof('Faults of dependencies', 'faults', faultsTable, 'faults-table'),
  proof('Path spellings', 'paths', counts),
  proof('Malformed requests', 'smuggling', counts),
  proof('Forged tokens', 'tokens-verifier', counts, 'tokens'),
  proof('Slow clients', 'slow-clients', slowClients),
  proof('Contract, with every kind of caller', 'schemathesis', schemathesis),
  proof('Users behind email addresses', 'forgotten-password', forgottenPassword),
  proof('Leaked secrets', 'secrets', secrets),
  proof('Dependencies', 'supply-chain', supplyChain, 'audit'),
];
