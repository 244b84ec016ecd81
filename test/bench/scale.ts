// `npm run bench -- scale`: measures reads a second at full load through 1, 2 and 4 gateways and as many content-caches.
// Each number of gateways is a separate set; all sets run at the same time and are measured in alternating rounds.
import { freeRow } from '../support/ports.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/wait.ts';
import { openRecords } from './cache/records.ts';
import { redisVersion, scale } from './figures.ts';
import { startAuth } from './gateway/auth.ts';
import { stopAll } from './gateway/processes.ts';
import { isReady, startContentCache, startGateway } from './own-services.ts';
import { median } from './percentiles.ts';
import { inRotatingOrder } from './rotating-order.ts';
import { startStores } from './stores.ts';
import { measure, startLoadGenerator, type Round } from './test-system.ts';
import { conclude } from './verdict.ts';

const sizes = [1, 2, 4];
const [rounds, seconds, warmUpSeconds, connections] = [5, 6 * scale, 15 * scale, 64];
/** CPU of the busiest content-cache as a multiple of the idlest. */
const maxSpread = 1.5;

/** Lets a name resolve to several IP addresses, as the DNS of Compose and Kubernetes does for several containers. */
const resolving = (hostname: string, addresses: readonly string[]): string => {
  const found = JSON.stringify(addresses.map((address) => ({ address, family: 4 })));
  const preload = `import dns from 'node:dns/promises';
    import { syncBuiltinESMExports } from 'node:module';
    const { lookup } = dns;
    dns.lookup = async (name, options) => name === '${hostname}' ? ${found} : lookup(name, options);
    syncBuiltinESMExports();`;
  return `--import=data:text/javascript,${encodeURIComponent(preload)}`;
};

const load = startLoadGenerator();
const stores = await startStores({ withKafka: false });
const redis = await startRedis();
try {
  const { url: auth, sign } = await startAuth();
  load.post(Array.from({ length: 500 }, (_, index) => sign(index + 1)));
  const addresses = Array.from({ length: Math.max(...sizes) }, (_, index) => `127.0.0.${index + 1}`);
  const [port, caches] = [await freeRow(1), [] as number[]];
  const context = { auth, postgres: stores.postgres, logs: stores.logs, redis: redis.url, kafka: '' };
  for (const host of addresses) {
    caches.push(startContentCache(port, context, { HOST: host }).pid!);
    await until(`content-cache at ${host} is ready`, () => isReady(port, host));
  }
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.admin.info('server'))![1]);

  async function startSet(size: number) {
    const pids: Record<string, number> = { redis: redisPid, load: load.pid };
    const origins: string[] = [];
    const settings = { NODE_OPTIONS: resolving('content-caches', addresses.slice(0, size)) };
    const urls = { upstream: auth, redis: redis.url, contentCache: `http://content-caches:${port}` };
    for (let index = 0; index < size; index += 1) {
      const gatewayPort = await freeRow(1);
      pids[`content-cache ${index}`] = caches[index]!;
      pids[`gateway ${index}`] = startGateway(gatewayPort, urls, settings).pid!;
      await until('the gateway is ready', () => isReady(gatewayPort));
      origins.push(`http://127.0.0.1:${gatewayPort}`);
    }
    return { size, pids, origins, rounds: [] as Round[] };
  }
  const sets: Awaited<ReturnType<typeof startSet>>[] = [];
  for (const size of sizes) sets.push(await startSet(size));
  const records = openRecords(stores.postgres);
  const paths = (await records.make(1_000)).map((id) => `/api/content/webform/${id}`);
  const ask = ({ origins, pids }: (typeof sets)[number], forSeconds: number) =>
    measure(load, { origins, paths, seconds: forSeconds, perSecond: 0, preopened: 0, connections }, pids);
  // Each process needs thousands of requests until V8 has compiled its code.
  for (const set of sets) await ask(set, warmUpSeconds * set.size);
  await inRotatingOrder(sets, rounds, async (set) => void set.rounds.push(await ask(set, seconds)));

  const verdicts = sets.slice(1).map(({ size, rounds: measured }) => {
    const spreads = measured.map(({ cpu }) => {
      const each = Object.keys(cpu).flatMap((name) => (name.startsWith('content') ? [cpu[name]!] : []));
      return Math.max(...each) / Math.min(...each);
    });
    const [spread, failed] = [median(spreads), measured.reduce((sum, round) => sum + round.failed, 0)];
    return {
      isHeld: spread <= maxSpread && failed === 0,
      text: `${size} of each: the busiest content-cache used ${spread.toFixed(2)} times the CPU of the idlest; the goal is ${maxSpread}; ${failed} requests failed`,
    };
  });
  const found = sets.map(({ size, rounds: measured }) => ({ size, rounds: measured }));
  const versions = { ...stores.versions, redis: await redisVersion(redis.admin) };
  conclude('scale', verdicts, { settings: { scale, seconds, connections }, verdicts, sets: found }, versions);
  await records.close();
} finally {
  await stopAll();
  await redis.stop();
  await stores.stop();
}
