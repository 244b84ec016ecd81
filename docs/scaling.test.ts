import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheInvalidation } from '@content-platform/contract';
import { SERVICES } from '../deploy/local/services.ts';
import { render } from '../deploy/kubernetes/testing/render.ts';
import { find } from '../deploy/kubernetes/testing/resources.ts';
import { contentCacheConfig } from '../services/content-cache/config.ts';

const text = readFileSync(join(import.meta.dirname, 'scaling.md'), 'utf8');
/** The cells of the row whose first one matches. */
const row = (first: RegExp) =>
  text
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .find((cells) => first.test(cells[1] ?? ''))!
    .slice(2);

test('Kafka is described as the topic is made', () => {
  expect(row(/^partitions$/)[0]).toBe(String(cacheInvalidation.partitions));
  expect(row(/^`retention\.ms`$/)[0]).toBe(`${cacheInvalidation.retentionMs / 86_400_000} days`);
});

test('the lag of replicas is the default, and a failover takes 2 s longer at least', () => {
  const lag = contentCacheConfig.CACHE_REPLICA_MAX_LAG.parse(undefined);
  expect(row(/min-replicas-max-lag/)[0]).toBe(`${lag} (s)`);
  expect(Number.parseInt(row(/down-after-milliseconds/)[0]!, 10)).toBeGreaterThanOrEqual((lag + 2) * 1_000);
});

test('PostgreSQL has room for every process of the example for production, and a quarter more during a rollout', () => {
  const folder = join(import.meta.dirname, '..', 'deploy', 'kubernetes', 'overlays', 'production');
  const resources = render(folder);
  const connections = SERVICES.map(({ name }) => {
    const most = find(resources, 'HorizontalPodAutoscaler', name)?.spec!.maxReplicas ?? 1;
    const [platform = '', logs = ''] = row(new RegExp(`(^|, )${name}(,|$)`));
    return (most + Math.ceil(most / 4)) * ((Number.parseInt(platform, 10) || 0) + Number.parseInt(logs, 10));
  });
  expect(text).toContain(`that is ${connections.reduce((sum, one) => sum + one)}.`);
});
