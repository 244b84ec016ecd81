import { expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../support/accounts.ts';
import { startAlertmanager } from '../support/alertmanager.ts';
import { withDatabase } from '../support/connections.ts';
import { newPushToken } from '../support/devices.ts';
import { startGatewayRace } from '../support/gateway-race.ts';
import { fileOf, newImage } from '../support/media.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { proofSize } from '../support/proof-size.ts';
import { startPrometheus } from '../support/prometheus.ts';
import { heapOf } from '../support/heap.ts';
import { database } from '../support/records.ts';
import { resourcesOf, type Resources } from '../support/resources.ts';
import { writeResult } from '../support/results.ts';
import { faultsAround, faultsWithin, type Fault } from '../support/soak-faults.ts';
import { isStackReady, pidOf, stack } from '../support/stack.ts';
import { watchDisk } from '../support/slow-disk.ts';
import { startTraffic } from '../support/traffic.ts';
import { useStarted } from '../support/use-started.ts';
import { until } from '../support/wait.ts';
import { startWebhook } from '../support/webhook.ts';

/**
 * Runs the whole stack under steady traffic with a fault every minute. Services are killed and stopped first, then
 * their dependencies, so that the processes are old when their resources are compared.
 */
const minutes = proofSize(60, 1);
const faultEveryMs = proofSize(60_000, 10_000);
/** Not a multiple of 5 s: pulse probes all services every 5 s, which opens connections. */
const sampleEveryMs = 3_700;
/** Part of the time with faults of the services; afterwards they run undisturbed. */
const withinPart = 1 / 3;

const own = useStarted(startOwnStack, 300_000);
const webhook = useStarted(startWebhook);
const alertmanager = useStarted(() => startAlertmanager({ webhook: webhook.url }), 300_000);
useStarted(() => startPrometheus(alertmanager.address, { isQuick: false }), 300_000);

/** Number of slow queries of a service in ten minutes above which the alert SlowQueries fires. */
const slowQueriesLimit = 5;
/** The share of requests that may fail: the target is 99.9 %. */
const budget = 0.001;
/** Alerts that are allowed if more requests failed. */
const burns = ['AvailabilityBurnFast', 'AvailabilityBurnSlow'];

interface SlowQuery {
  service: string;
  statement: string;
  at: Date;
  duration_ms: number;
}

/** Its name, the expected status and the request. */
type Chore = [string, number, (gateway: string, token: string) => Promise<{ status: number }>];
const newDevice = () => ({ token: newPushToken() });
const unknown = { model: 'webform', id: 999_999_999 } as const;
const chores: Chore[] = [
  ['upload', 201, async (at, token) => call(at, contract.upload, { body: fileOf(await newImage()), token })],
  ['device', 200, (at, token) => call(at, contract.registerFcmToken, { body: newDevice(), token })],
  ['letters', 200, (at, token) => call(at, contract.listLetters, { token })],
  ['me', 200, (at, token) => call(at, contract.me, { token })],
  ['unknown record', 404, (at, token) => call(at, contract.readContent, { params: unknown, token })],
  ['unknown path', 404, (at) => fetch(`${at}/api/nothing`)],
];

/** Sends one request per second, alternating between all operations except reads, and counts the statuses. */
async function startChores() {
  const { gateway } = stack();
  const answers: Record<string, Record<string, number>> = {};
  let turn = 0;
  const traffic = startTraffic(1, async () => {
    const [name, , does] = chores[(turn += 1) % chores.length]!;
    const status = await tokenOf(gateway, 'user')
      .then(async (token) => String((await does(gateway, token)).status))
      .catch(() => 'no answer');
    const counts = (answers[name] ??= {});
    counts[status] = (counts[status] ?? 0) + 1;
  });
  return {
    async stop() {
      await traffic.stop();
      return answers;
    },
  };
}

interface Sample {
  seconds: number;
  services: Record<string, Resources>;
}

async function sample(start: number, samples: Sample[]): Promise<void> {
  const names = Object.keys(stack().services);
  const all = await Promise.allSettled(names.map(async (name) => [name, await resourcesOf(name)] as const));
  const services = Object.fromEntries(
    all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])),
  );
  samples.push({ seconds: Math.round((performance.now() - start) / 1_000), services });
}

/** Returns each service's heap after a garbage collection, in bytes. */
async function heaps(): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const name of Object.keys(stack().services)) found[name] = await heapOf(pidOf(name));
  return found;
}

/**
 * Returns a service's minimum resources during `samples`, because requests in progress come and go. For memory it
 * returns the maximum, because the minimum depends on when the last large collection happened.
 */
function heldBy(service: string, samples: readonly Sample[]) {
  const all = samples.flatMap(({ services }) => services[service] ?? []);
  const least = (key: keyof Resources) => Math.min(...all.map((each) => each[key]));
  return {
    files: least('files'),
    sockets: least('sockets'),
    handles: least('handles'),
    rss: Math.max(...all.map((each) => each.rss)),
  };
}

/**
 * Returns the targets of the processed events by the services' logs. Excludes clears of records that were found stale
 * later, because no event caused them.
 */
function targetsOfEvents(): Set<string> {
  const lines = own.logs().matchAll(/"target":"([^"]+)","requested_by":"[^"]*","source":"kafka"/g);
  return new Set(Array.from(lines, ([, target]) => target!));
}

test(
  `${minutes} minutes with a fault every ${faultEveryMs / 1_000} s: no read is stale, no event is lost, nothing leaks, no alert fires without a cause`,
  async () => {
    const race = await startGatewayRace({ readsPerSecond: 40, changesPerSecond: 4 });
    const work = await startChores();
    const disk = await watchDisk(own.folder);
    const samples: Sample[] = [];
    const start = performance.now();
    const sampling = startTraffic(1_000 / sampleEveryMs, () => sample(start, samples));
    const faults: { seconds: number; name: string }[] = [];
    const seconds = () => Math.round((performance.now() - start) / 1_000);
    /** Causes these faults one after the other, repeatedly, until the given part of the time is over. */
    async function suffer(kinds: readonly Fault[], part: number): Promise<void> {
      for (let turn = 0; turn === 0 || seconds() < minutes * 60 * part; turn += 1) {
        const fault = kinds[turn % kinds.length]!;
        faults.push({ seconds: seconds(), name: fault.name });
        const next = sleep(faultEveryMs);
        await fault.inject();
        await next;
        await until('every service is ready again', isStackReady, 120_000);
      }
    }
    await suffer(faultsWithin, withinPart);
    const quietFrom = seconds();
    const heapsBefore = await heaps();
    await suffer(faultsAround, 1);
    const told = Object.keys(webhook.notified());
    await disk.stop();
    const { rows: slow } = await withDatabase(stack().logs, (logs) =>
      logs.query<SlowQuery>('SELECT service, statement, at, duration_ms FROM logs.slow_query'),
    );
    // The disk of the machine is no fault of the platform.
    const unexplained = slow.filter(({ at, duration_ms: ms }) => !disk.wasSlow(+at - ms, +at));
    const most = Math.max(
      0,
      ...Object.values(Object.groupBy(unexplained, ({ service }) => service)).map((all) => all!.length),
    );
    const done = await work.stop();
    const { announced, ...figures } = await race.stop();
    const unprocessed = () => {
      const targets = targetsOfEvents();
      return announced.filter((target) => !targets.has(target));
    };
    await until('each event is processed', () => unprocessed().length === 0).catch(() => undefined);
    const lostEvents = unprocessed();
    const { rows } = await database().query<{ count: number }>(
      'SELECT count(*)::int AS count FROM content.failed_job',
    );
    const asked = Object.values(figures.answers).reduce((sum, count) => sum + count, 0);
    const failing = Object.entries(figures.answers).reduce(
      (sum, [answer, count]) => sum + (answer.startsWith('5') ? count : 0),
      0,
    );
    const poison = faults.filter(({ name }) => name === 'a poison event').length;
    const due = [
      ...(poison > 0 ? ['FailedJobs'] : []),
      ...(failing > asked * budget ? burns : []),
      ...(most <= slowQueriesLimit ? ['SlowQueries'] : []),
    ];
    // Idle connections are closed within seconds.
    await sleep(10_000);
    await sampling.stop();
    const heapsAfter = await heaps();

    const quiet = samples.filter((each) => each.seconds > quietFrom);
    const part = Math.ceil(quiet.length / 3);
    const held = Object.keys(stack().services).map((service) => ({
      service,
      before: { ...heldBy(service, quiet.slice(0, part)), heap: heapsBefore[service]! },
      after: { ...heldBy(service, quiet.slice(-part)), heap: heapsAfter[service]! },
      restarts: new Set(quiet.map(({ services }) => services[service]?.pid).filter(Boolean)).size - 1,
    }));
    const { failed: _, ...seen } = figures;
    writeResult('faults', 'soak', {
      minutes,
      faultEveryMs,
      seen: { ...seen, events: announced.length, lostEvents },
      done,
      told,
      slowQueries: { all: slow.length, withoutSlowDisk: unexplained },
      due,
      poison,
      faults,
      held,
    });

    expect(figures).toMatchObject({ stale: [], lost: [] });
    expect(lostEvents).toEqual([]);
    expect(figures.answers['200']! / asked).toBeGreaterThan(0.8);
    // Half of the figures of undisturbed minutes.
    expect(figures.hits).toBeGreaterThan(minutes * 60 * 10);
    expect(figures.clears).toBeGreaterThan(minutes * 60);
    expect(announced.length).toBeGreaterThan(minutes * 60);
    expect(rows[0]!.count).toBe(poison);
    for (const [name, status] of chores) {
      const counts = done[name]!;
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
      expect([name, counts[status]! / all > 0.8]).toEqual([name, true]);
    }
    expect(told.filter((name) => !due.includes(name))).toEqual([]);
    // Proves that alerts are delivered; a run of one minute has none yet.
    if (poison > 0) expect(told).toContain('FailedJobs');
    for (const { service, before, after, restarts } of held) {
      expect([service, restarts]).toEqual([service, 0]);
      for (const key of ['files', 'sockets', 'handles'] as const)
        expect([service, key, after[key] <= before[key] + 3]).toEqual([service, key, true]);
      // In a run of minutes the JIT compiler still allocates memory.
      for (const [key, most] of [
        ['heap', 1.1],
        ['rss', 1.2],
      ] as const)
        expect([service, key, after[key] / before[key] < proofSize(most, 2)]).toEqual([service, key, true]);
    }
  },
  minutes * 60_000 + 600_000,
);
