import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheInvalidation } from '@content-platform/contract';
import { ROOT } from './local/config.ts';
import { contentCacheConfig } from '../services/content-cache/config.ts';

const text = ['scaling.md', 'redis-ha.md']
  .map((file) => readFileSync(join(ROOT, 'docs', 'operations', file), 'utf8'))
  .join('\n');

/** The cells after the first one, of the row whose first cell matches. */
function row(first: RegExp): string[] {
  const rows = text.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  const found = rows.find((cells) => first.test(cells[1] ?? ''));
  if (!found)
    throw new Error(
      `Add a row to a table of docs/operations/scaling.md or redis-ha.md whose first cell matches ${first}`,
    );
  return found.slice(2);
}

test('describes Kafka with the settings of the created topic', () => {
  expect(row(/^partitions$/)[0]).toBe(String(cacheInvalidation.partitions));
  expect(row(/^`retention\.ms`$/)[0]).toBe(`${cacheInvalidation.retentionMs / 86_400_000} days`);
});

test('uses the default replica lag, and a failover that takes at least 2 s longer', () => {
  const lag = contentCacheConfig.CACHE_REPLICA_MAX_LAG.parse(undefined);
  expect(row(/min-replicas-max-lag/)[0]).toBe(`${lag} (s)`);
  expect(Number.parseInt(row(/down-after-milliseconds/)[0]!, 10)).toBeGreaterThanOrEqual((lag + 2) * 1_000);
});
