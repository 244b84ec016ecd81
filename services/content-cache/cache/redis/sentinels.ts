import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type HostPort, type RedisAccess, type RedisAddress, sentinelLogin } from '@content-platform/chassis';
import { AbstractConnector, Redis } from 'ioredis';
import { CacheUnavailable } from '../connection.ts';
import { clientSettings, withTemporaryClient } from './primary.ts';

export type SentinelAddress = Extract<RedisAddress, { form: 'sentinel' }>;

/**
 * Returns the address of the primary. Asks all sentinels at once, so that a hanging sentinel does not delay the others.
 * If they disagree, the reply with the highest failover epoch wins. The caller must check that the server is a primary:
 * https://redis.io/docs/latest/develop/reference/sentinel-clients/
 * Throws CacheUnavailable if no sentinel knows the primary.
 */
export async function findPrimary({ sentinels, name, access }: SentinelAddress): Promise<HostPort> {
  const settings = { ...sentinelLogin(access), ...(access.tls ? { tls: access.tls } : {}) };
  const replies = await Promise.allSettled(
    sentinels.map((sentinel) => askSentinel({ ...sentinel, ...settings }, name)),
  );
  const [latest] = replies
    .flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []))
    .toSorted((a, b) => b.epoch - a.epoch);
  if (latest) return latest.primary;
  const reasons = new Set(replies.map((reply) => ((reply as PromiseRejectedResult).reason as Error).message));
  throw new CacheUnavailable(`no sentinel knows the primary ${name} (${[...reasons].join('; ')})`);
}

function askSentinel(sentinel: HostPort & RedisAccess, name: string) {
  return withTemporaryClient(sentinel, async (client) => {
    // Sent together, so that address and epoch match. In a failover, only GET-MASTER-ADDR-BY-NAME has the new address.
    const [address, about] = (await Promise.all([
      client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      client.call('SENTINEL', 'MASTER', name),
    ])) as [string[] | null, string[]];
    if (!address) throw new Error('unknown primary name');
    return {
      primary: { host: address[0]!, port: Number(address[1]) },
      epoch: Number(about[about.indexOf('config-epoch') + 1]),
    };
  });
}

/** Creates a client that asks the sentinels for the primary before each connect. */
export function openThroughSentinels(address: SentinelAddress): Redis {
  class Connector extends AbstractConnector {
    async connect() {
      this.connecting = true;
      const to = await findPrimary(address);
      if (!this.connecting) throw new CacheUnavailable('the connection was closed');
      this.stream = address.access.tls ? connectTls({ ...to, ...address.access.tls }) : connect(to);
      this.stream.once('error', (error) => (this.firstError = error));
      return this.stream;
    }
  }
  return new Redis({ ...clientSettings, ...address.access, Connector: Connector as never });
}
