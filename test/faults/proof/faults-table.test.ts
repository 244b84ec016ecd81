import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { newUser, type OwnUser } from '../../support/accounts.ts';
import { isStackReady } from '../../support/stack.ts';
import { until } from '../../support/wait.ts';
import { expectPageIsCurrent } from '../../support/written-page.ts';
import { dependencies, type Dependency, type Fault } from '../dependencies.ts';
import { clearAndRead, createRound, createTestData, groups, measure } from '../groups.ts';
import type { Round, TestData } from '../groups.ts';
import {
  docFile,
  type Measured,
  type Observation,
  readResults,
  render,
  textOf,
  updated,
  writeResults,
} from '../table.ts';
import { person, startFaultyStack, type FaultyStack } from '../faulty-stack.ts';

/** A selection of dependencies, for example FAULTS=redis,postgres. */
const chosen = process.env['FAULTS']?.split(',');
const some = dependencies.filter(({ id }) => chosen?.includes(id) ?? true);
const written = readResults();
const results = { ...written };
const backMs = 60_000;
/** Time limit of each request in ms; long enough for an upload. */
const longestMs = 80_000;
/** Delay between requests in ms, so that fast responses are not slowed by simultaneous requests. */
const apartMs = 40;
/** Time until the second round in ms: by then every process has noticed the fault. */
const laterMs = 6_500;

let faultyStack: FaultyStack;
let user: OwnUser;
beforeAll(async () => {
  faultyStack = await startFaultyStack();
  user = await newUser();
}, 300_000);
afterAll(() => faultyStack?.stop(), 120_000);

/** Sends the requests of all groups, one shortly after the other. */
async function measureAll(round: Round) {
  const measured = groups.map(async (group, index) => {
    await sleep(index * apartMs);
    return [group.name, await measure(group, round)] as const;
  });
  return Object.fromEntries(await Promise.all(measured));
}

/** Throws unless every group returns its healthy response. */
async function areGroupsHealthy(data: TestData): Promise<true> {
  if (!(await isStackReady())) throw new Error('a service is unavailable or degraded');
  const answers = await measureAll(await createRound(data, person.subject));
  const wrong = groups.filter(({ name, healthy }) => textOf(answers[name]!) !== healthy);
  if (wrong.length === 0) return true;
  throw new Error(wrong.map(({ name }) => `${name}: ${JSON.stringify(answers[name])}`).join(', '));
}

/** Starts the fault, sends two rounds of requests, ends it and waits for the recovery. */
async function observe(dependency: Dependency, fault: Fault, data: TestData): Promise<Measured> {
  const rounds = await Promise.all([createRound(data, person.subject), createRound(data, person.subject)]);
  let first: Awaited<ReturnType<typeof measureAll>>;
  let later: typeof first;
  try {
    await fault.on(faultyStack);
    const firstSent = measureAll(rounds[0]);
    await Promise.all([Promise.race([firstSent, sleep(laterMs)]), sleep(dependency.lastsMs ?? 0)]);
    const laterSent = measureAll(rounds[1]);
    [first, later] = await Promise.all([firstSent, laterSent]);
  } finally {
    await fault.off(faultyStack);
  }
  const ended = performance.now();
  const limit = dependency.backWithinMs ?? backMs;
  await until('every group is healthy again', () => areGroupsHealthy(data), limit);
  await until('the dependency is used again', () => dependency.isBack?.(faultyStack) ?? true, limit);
  const passed = Math.round(performance.now() - ended);
  // Refused clears are sent again and must be final.
  for (const round of rounds) expect(await clearAndRead(round)).toEqual({ status: 200 });
  const answers = groups.map(
    ({ name }) =>
      [name, [first, later].map((round) => [textOf(round[name]!), round[name]!.ms] as const)] as const,
  );
  for (const round of [first, later])
    for (const [name, { wrong, ms }] of Object.entries(round))
      expect({ name, wrong, isInTime: ms <= longestMs }).toEqual({ name, wrong: undefined, isInTime: true });
  return { answers: Object.fromEntries(answers), backMs: passed };
}

/** The part of an observation that the table shows, of the groups in `known`. */
const shown = ({ answers, backWithin }: Observation, known = answers) =>
  JSON.stringify([backWithin, Object.keys(known).map((name) => answers[name])]);

describe.each(some)('$title', (dependency) => {
  let data: TestData;
  beforeAll(async () => {
    await dependency.begin?.(faultyStack);
    data = await until('the test data is created', () => createTestData(user));
    await until('every group is healthy', () => areGroupsHealthy(data), 120_000);
  }, 200_000);
  afterAll(() => dependency.end?.(faultyStack));

  test.each(dependency.faults)(
    '$name',
    async (fault) => {
      const before = written[dependency.id]?.find((one) => one.fault === fault.name);
      const observed = async () => updated(fault.name, await observe(dependency, fault, data), before);
      let seen = await observed();
      // A busy machine may be the reason: repeat an observation that has changed.
      if (before && shown(seen, before.answers) !== shown(before)) seen = await observed();
      const all = [...(results[dependency.id] ?? []).filter((one) => one.fault !== fault.name), seen];
      const order = dependency.faults.map(({ name }) => name);
      results[dependency.id] = all
        .filter((one) => order.includes(one.fault))
        .toSorted((a, b) => order.indexOf(a.fault) - order.indexOf(b.fault));
      writeResults(results);
    },
    400_000,
  );
});

test('docs/operations/failure-modes.md matches the responses', async () => {
  expectPageIsCurrent(docFile, render(dependencies, groups, results));
});
