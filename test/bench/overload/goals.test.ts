import { expect, test } from '@jest/globals';
import type { Seen } from '../load/job.ts';
import { judge, type Step } from './goals.ts';
import type { Probed } from './probe.ts';

const wellSeen: Seen = {
  due: 3_000,
  answered: 3_000,
  statuses: { 200: 950, 503: 2_050 },
  goodput: 950,
  goodputInTime: 950,
  goodEachSecond: [950],
  good: { p50: 20, p95: 40, p99: 60, max: 90 },
  refused: { p50: 10, p95: 20, p99: 30, max: 60 },
  withoutRetryAfter: 0,
  gaveUp: 0,
  unsent: 0,
  broken: 0,
  endedAt: 0,
  late: 0,
};
const answers = { asked: 10, failed: 0, p99: 20, max: 30 };
const wellProbed: Probed = {
  health: answers,
  metrics: answers,
  reads: { asked: 10, statuses: { 200: 10 } },
  recovery: 300,
};

function verdicts(seen: Partial<Seen> = {}, probed: Partial<Probed> = {}, afterwards = 1_000): boolean[] {
  const step: Step = {
    multiple: 3,
    perSecond: 3_000,
    seen: { ...wellSeen, ...seen },
    probed: { ...wellProbed, ...probed },
    cpu: {},
  };
  return judge(1_000, [step], afterwards).map(({ isHeld }) => isHeld);
}

test('all is held', () => expect(verdicts()).toEqual([true, true, true, true, true, true]));

test.each<[string, number, Partial<Seen>, Partial<Probed>, number]>([
  ['goodput that comes too late', 0, { goodputInTime: 899 }, {}, 1_000],
  ['slow refusals', 1, { refused: { p50: 10, p95: 20, p99: 51, max: 60 } }, {}, 1_000],
  ['another status', 2, { statuses: { 200: 950, 504: 1 } }, {}, 1_000],
  ['no Retry-After', 2, { withoutRetryAfter: 1 }, {}, 1_000],
  ['no answer', 2, { gaveUp: 1 }, {}, 1_000],
  ['health that does not answer', 3, {}, { health: { ...answers, failed: 1 } }, 1_000],
  ['a slow recovery', 4, {}, { recovery: 5_000 }, 1_000],
  ['a half recovery', 5, {}, {}, 899],
])('%s is told', (_, index, seen, probed, afterwards) => {
  expect(verdicts(seen, probed, afterwards)).toEqual([0, 1, 2, 3, 4, 5].map((each) => each !== index));
});
