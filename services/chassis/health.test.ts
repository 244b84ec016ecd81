import { expect, test } from '@jest/globals';
import { createReadinessCheck } from './health.ts';

/** A check that passes if `works` is true, and the number of its runs. */
function counted(required: boolean) {
  const state = { works: true, runs: 0 };
  const check = async () => {
    state.runs += 1;
    if (!state.works) throw new Error('unavailable');
  };
  return { state, check: { required, check } };
}

test('calls within a second share one round of checks', async () => {
  const { state, check } = counted(true);
  const assess = createReadinessCheck({ postgres: check });
  for (let asked = 0; asked < 3; asked += 1)
    for (const assessment of await Promise.all(Array.from({ length: 20 }, assess)))
      expect(assessment).toEqual({ outcomes: { postgres: 'ok' }, failing: [] });
  expect(state.runs).toBe(1);
});

test('the call after a failed round checks again', async () => {
  const { state, check } = counted(true);
  const assess = createReadinessCheck({ tokens: check });
  state.works = false;
  expect(await assess()).toEqual({ outcomes: { tokens: 'unavailable' }, failing: ['tokens'] });
  state.works = true;
  expect(await assess()).toEqual({ outcomes: { tokens: 'ok' }, failing: [] });
});

test('an optional check does not affect readiness, and a check that hangs is unavailable', async () => {
  const { state, check } = counted(false);
  state.works = false;
  const hanging = { required: true, check: () => new Promise(() => undefined) };
  expect(await createReadinessCheck({ redis: check, postgres: hanging })()).toEqual({
    outcomes: { redis: 'unavailable', postgres: 'unavailable' },
    failing: ['postgres'],
  });
});
