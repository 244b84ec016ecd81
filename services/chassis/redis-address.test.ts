import { expect, test } from '@jest/globals';
import { redisUrl, readConfig } from './config.ts';
import { parseRedisUrl } from './redis-address.ts';

const at = (host: string, port: number) => ({ host, port });
const secret = { username: 'app', password: 'secret' };
test.each([
  ['redis://u:p@here:1/2', { form: 'single', url: 'redis://u:p@here:1/2' }],
  [
    'redis-sentinel://a,b:7,[::1]:8/main',
    { form: 'sentinel', sentinels: [at('a', 26_379), at('b', 7), at('::1', 8)], name: 'main', access: {} },
  ],
  [
    'rediss-sentinel://:p%40ss@a/main',
    { form: 'sentinel', sentinels: [at('a', 26_379)], name: 'main', access: { password: 'p@ss', tls: {} } },
  ],
  [
    'redis-cluster://app:secret@a:7,b',
    { form: 'cluster', nodes: [at('a', 7), at('b', 6379)], access: secret },
  ],
  ['rediss-cluster://a', { form: 'cluster', nodes: [at('a', 6379)], access: { tls: {} } }],
])('parses %s', (url, address) => {
  expect(parseRedisUrl(url)).toEqual(address);
});

test.each([
  'http://here',
  'redis-sentinel://a,b',
  'redis-sentinel://a/',
  'redis-sentinel:///main',
  'redis-sentinel://a/main/0',
  'redis-sentinel://a/main?db=1',
  'redis-cluster://a/0',
  'redis-cluster://',
  'redis-cluster://a,,b',
  'redis-cluster://a:0',
  'redis-cluster://a:65536',
  'redis-cluster://a:x',
  'redis-cluster://u:p:q@a@b',
  'redis-cluster://u:%zz@a',
  'redis-cluster://a b',
])('refuses %s in one line that names the allowed forms and hides passwords', (url) => {
  const read = () => readConfig({ REDIS_URL: redisUrl }, { REDIS_URL: url });
  expect(read).toThrow(
    /^REDIS_URL must be redis:\/\/.*redis-sentinel:.*redis-cluster:.*, not what it is set to$/,
  );
});
