// Queries the registry, whose answers change over time. A failed query fails the test, because the result is unknown.
import { expect, test } from '@jest/globals';
import { directDependencies, knownUnmaintained, lockedPackages, projects } from '../support/dependencies.ts';
import { audit, releases, Unasked, type Advisory } from '../support/registry.ts';
import { writeResult } from '../support/results.ts';

/** Accepted vulnerabilities by package, each with its reason. */
const bearable: Record<string, string> = {};

const monthMs = 30.44 * 86_400_000;
/** A library without a release for so many months counts as unmaintained. */
const months = 24;

interface Dated {
  name: string;
  used: string[];
  newest: string;
  date: string;
}

const numbers = (version: string): number[] => version.split('.').map(Number);

function byNumber(a: string, b: string): number {
  const [x, y] = [numbers(a), numbers(b)];
  const index = x.findIndex((part, at) => part !== y[at]);
  return index < 0 ? 0 : x[index]! - y[index]!;
}

/** Counts consecutive patches x.y.z of a minor version, and those dated before their predecessor. */
function disorder(all: readonly Record<string, string>[]): { pairs: number; reversed: number } {
  let [pairs, reversed] = [0, 0];
  for (const times of all) {
    const versions = Object.keys(times)
      .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
      .toSorted(byNumber);
    for (const [index, version] of versions.slice(1).entries()) {
      const before = versions[index]!;
      if (String(numbers(before).slice(0, 2)) !== String(numbers(version).slice(0, 2))) continue;
      pairs += 1;
      if (Date.parse(times[version]!) < Date.parse(times[before]!)) reversed += 1;
    }
  }
  return { pairs, reversed };
}

/** Returns the newest release; pre-releases count only if there is nothing else. */
function lastRelease(name: string, used: Iterable<string>, times: Record<string, string>): Dated {
  const stable = Object.keys(times).filter((version) => !version.includes('-'));
  const versions = stable.length > 0 ? stable : Object.keys(times);
  const newest = versions.reduce((a, b) => (Date.parse(times[b]!) > Date.parse(times[a]!) ? b : a));
  return { name, used: [...used], newest, date: times[newest]!.slice(0, 10) };
}

/** The result, or the reason why it is unknown. */
type Answer<T> = { answer: T } | { unknown: string };

async function ask<T>(question: () => Promise<T>): Promise<Answer<T>> {
  try {
    return { answer: await question() };
  } catch (error) {
    if (error instanceof Unasked) return { unknown: error.message };
    throw error;
  }
}

const findings: Record<string, unknown> = {};
const note = (found: Record<string, unknown>): void =>
  writeResult('faults', 'supply-chain', {
    settings: { bearable, unmaintainedAfterMonths: months },
    ...Object.assign(findings, found),
  });

function countLicences(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { license = 'not in the lock file: see docs/project/licences.md' } of lockedPackages())
    counts[license] = (counts[license] ?? 0) + 1;
  return counts;
}

test('npm audit reports only accepted vulnerabilities', async () => {
  const asked = await Promise.all(
    projects.map(async (project) => ({ project: project || '.', ...(await ask(() => audit(project))) })),
  );
  note({ packages: lockedPackages().length, licences: countLicences(), audit: asked });
  const unknown = asked.flatMap((one) => ('unknown' in one ? [`${one.project}: ${one.unknown}`] : []));
  expect(unknown).toEqual([]);
  const holes = asked.flatMap((one): Advisory[] => ('answer' in one ? one.answer : []));
  expect(holes.filter(({ name }) => !Object.hasOwn(bearable, name))).toEqual([]);
});

test('every library had a release in the last 24 months unless docs/project/dependencies.md calls it unmaintained', async () => {
  const marked = knownUnmaintained();
  const direct = directDependencies();
  const all: Record<string, string>[] = [];
  const dated: Dated[] = [];
  const unknown: string[] = [];
  for (const name of direct.keys()) {
    const asked = await ask(() => releases(name));
    if ('unknown' in asked) {
      unknown.push(asked.unknown);
      continue;
    }
    all.push(asked.answer);
    dated.push(lastRelease(name, direct.get(name)!, asked.answer));
  }
  const order = disorder(all);
  // A mirror may report when it first saw a version instead of its release: an old library then looks new.
  if (order.reversed > order.pairs / 20)
    unknown.push(
      `the dates of releases could not be asked: ${order.reversed} of ${order.pairs} patches are dated before the one they follow`,
    );
  const limit = Date.now() - months * monthMs;
  const old = dated.filter(({ date }) => Date.parse(date) < limit).map(({ name }) => name);
  note({ releases: { unknown, order, marked, old, dated } });
  expect(unknown).toEqual([]);
  expect(old.toSorted()).toEqual(marked.toSorted());
});
