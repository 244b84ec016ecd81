import { expect, test } from '@jest/globals';
import { calledAfterEach } from '../../test/support/called-after-each.ts';
import { until } from '../../test/support/wait.ts';
import { createLogger } from './logger.ts';
import type { Database } from './postgres.ts';
import { firstRetentionMs, startRetention } from './retention.ts';

const closers = calledAfterEach();

test('the first run is 30 to 60 seconds after the start, at a random moment', () => {
  const times = Array.from({ length: 1_000 }, firstRetentionMs);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(30_000);
  expect(Math.max(...times)).toBeLessThan(60_000);
  expect(new Set(times).size).toBeGreaterThan(900);
});

test('runs repeatedly, but not at the start', async () => {
  const log: string[] = [];
  const logger = createLogger('test', 'info', { write: (line) => void log.push(line) });
  const query = (() => Promise.reject(new Error('unused'))) as Database['query'];
  const start = (times?: { firstMs: number; everyMs: number }) => {
    const state = { runs: 0 };
    const steps = () => ({ rows: async () => void (state.runs += 1) });
    closers.push(startRetention(query, steps, logger, times));
    return state;
  };
  const [later, soon] = [start(), start({ firstMs: 10, everyMs: 10 })];
  expect(soon.runs).toBe(0);
  await until('it is done several times', () => soon.runs > 2);
  expect(later.runs).toBe(0);
  expect(log).toEqual([]);
});
