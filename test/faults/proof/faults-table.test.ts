import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { newUser, type OwnUser } from '../../support/accounts.ts';
import { isWell } from '../../support/stack.ts';
import { until } from '../../support/wait.ts';
import { expectPage } from '../../support/written-page.ts';
import { dependencies, type Dependency, type Fault } from '../dependencies.ts';
import { ask, clearAndRead, createScene, createTurn, groups, type Scene, type Turn } from '../groups.ts';
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

let world: FaultyStack;
let user: OwnUser;
beforeAll(async () => {
  world = await startFaultyStack();
  user = await newUser();
}, 300_000);
afterAll(() => world?.stop(), 120_000);

/** Sends the requests of all groups, one shortly after the other. */
async function askAll(turn: Turn) {
  const asked = groups.map(async (group, index) => {
    await sleep(index * apartMs);
    return [group.name, await ask(group, turn)] as const;
  });
  return Object.fromEntries(await Promise.all(asked));
}

/** Throws unless every group returns its healthy response. */
async function allIsWell(scene: Scene): Promise<true> {
  if (!(await isWell())) throw new Error('a service lacks something');
  const answers = await askAll(await createTurn(scene, person.subject));
  const wrong = groups.filter(({ name, well }) => textOf(answers[name]!) !== well);
  if (wrong.length === 0) return true;
  throw new Error(wrong.map(({ name }) => `${name}: ${JSON.stringify(answers[name])}`).join(', '));
}

/** Starts the fault, sends two rounds of requests, ends it and waits for the recovery. */
async function observe(dependency: Dependency, fault: Fault, scene: Scene): Promise<Measured> {
  const turns = await Promise.all([createTurn(scene, person.subject), createTurn(scene, person.subject)]);
  let first: Awaited<ReturnType<typeof askAll>>;
  let later: typeof first;
  try {
    await fault.on(world);
    const firstAsked = askAll(turns[0]);
    await Promise.all([Promise.race([firstAsked, sleep(laterMs)]), sleep(dependency.lastsMs ?? 0)]);
    const laterAsked = askAll(turns[1]);
    [first, later] = await Promise.all([firstAsked, laterAsked]);
  } finally {
    await fault.off(world);
  }
  const ended = performance.now();
  const limit = dependency.backWithinMs ?? backMs;
  await until('all is as before', () => allIsWell(scene), limit);
  await until('it is used again', () => dependency.isBack?.(world) ?? true, limit);
  const passed = Math.round(performance.now() - ended);
  // Refused clears are sent again and must be final.
  for (const turn of turns) expect(await clearAndRead(turn)).toEqual({ status: 200 });
  const answers = groups.map(
    ({ name }) =>
      [name, [first, later].map((turn) => [textOf(turn[name]!), turn[name]!.ms] as const)] as const,
  );
  for (const turn of [first, later])
    for (const [name, { wrong, ms }] of Object.entries(turn))
      expect({ name, wrong, isInTime: ms <= longestMs }).toEqual({ name, wrong: undefined, isInTime: true });
  return { answers: Object.fromEntries(answers), backMs: passed };
}

/** The part of an observation that the table shows. */
const shown = ({ answers, backWithin }: Observation) => JSON.stringify([backWithin, answers]);

describe.each(some)('$title', (dependency) => {
  let scene: Scene;
  beforeAll(async () => {
    await dependency.begin?.(world);
    scene = await until('the scene is set', () => createScene(user));
    await until('all is well', () => allIsWell(scene), 120_000);
  }, 200_000);
  afterAll(() => dependency.end?.(world));

  test.each(dependency.faults)(
    '$name',
    async (fault) => {
      const before = written[dependency.id]?.find((one) => one.fault === fault.name);
      const observed = async () => updated(fault.name, await observe(dependency, fault, scene), before);
      let seen = await observed();
      // A busy machine may be the reason: repeat an observation that has changed.
      if (before && shown(seen) !== shown(before)) seen = await observed();
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
  expectPage(docFile, render(dependencies, groups, results));
});
