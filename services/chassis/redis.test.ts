import { expect, test } from '@jest/globals';
import { tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { startProxy } from '../../test/support/proxy.ts';
import { startRedis } from '../../test/support/redis-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { activeSpan, beginSpan, inSpan } from './context.ts';
import { createLogger } from './logger.ts';
import { createRedis } from './redis.ts';
import { sentSpans } from './testing/sent-spans.ts';

const server = useStarted(startRedis);

test('the commands of two requests are in their own traces', async () => {
  sentSpans();
  const redis = createRedis(server.url, createLogger('test', 'silent'));
  await until('it is connected', () => redis.ping());
  const traces: unknown[] = [];
  tracingChannel('ioredis:command').start.subscribe(() => void traces.push(activeSpan()?.traceId));
  const requests = ['a', 'b'].map((name) => beginSpan(name, { kind: 'server' })!);
  // A busy machine may miss the time limit of a command, which does not matter here.
  await Promise.allSettled(requests.map((span) => inSpan(span, () => redis.ping())));
  redis.disconnect();
  expect(traces).toEqual(requests.map(({ traceId }) => traceId));
});

test('connects to the nodes of a cluster with TLS by name, as certificates require', async () => {
  const redis = createRedis('rediss-cluster://localhost:1', createLogger('test', 'silent'));
  const [, node] = (await once(redis, 'node error')) as [Error, string];
  redis.disconnect();
  expect(node).toBe('localhost:1');
});

test('leaves a connection whose server is gone, and connects again', async () => {
  const proxy = await startProxy(new URL(server.url));
  const redis = createRedis(proxy.url, createLogger('test', 'silent'));
  const responds = () => redis.ping().then(() => true);
  await until('it is connected', responds);
  proxy.blackhole();
  await expect(redis.ping()).rejects.toThrow('timed out');
  // Without a limit for the connection, TCP keeps it for a quarter of an hour.
  await until('it responds again', responds, 20_000);
  redis.disconnect();
  await proxy.close();
});
