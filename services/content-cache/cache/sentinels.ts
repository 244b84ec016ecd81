import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

import { type HostPort, type RedisAccess, type RedisAddress, sentinelLogin } from '@content-platform/chassis';
import { AbstractConnector, Redis } from 'ioredis';

import { askOnce } from './ask-once.ts';
import { CacheUnavailable } from './errors.ts';
import { clientSettings } from './primary.ts';

export type SentinelAddress = Extract<RedisAddress, { form: 'sentinel' }>;

interface Answer {
  primary: HostPort;
  epoch: number;
}

/**
 * The address of the primary, asked of all sentinels at once, so that one that hangs costs no other its turn. Where they
 * disagree, the one that has heard of the latest failover is right. Who is connected to must still say that it is the
 * primary: https://redis.io/docs/latest/develop/reference/sentinel-clients/
 *
 * @throws CacheUnavailable when none of them knows
 */
export async function findPrimary({ sentinels, name, access }: SentinelAddress): Promise<HostPort> {
  const asked = await Promise.allSettled(
    sentinels.map((sentinel) =>
      ask({ ...sentinel, ...sentinelLogin(access), ...(access.tls ? { tls: access.tls } : {}) }, name),
    ),
  );
  const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const latest = answers.reduce<Answer | undefined>(
    (best, answer) => (best && best.epoch >= answer.epoch ? best : answer),
    undefined,
  );
  if (latest) return latest.primary;
  const why = asked.map((one) => (one.status === 'rejected' ? (one.reason as Error).message : ''));
  throw new CacheUnavailable(`no sentinel knows the primary ${name} (${[...new Set(why)].join('; ')})`);
}

function ask(sentinel: HostPort & RedisAccess, name: string): Promise<Answer> {
  return askOnce(sentinel, async (client) => {
    // Together: the address changes with the epoch, and in the middle of a failover only the first tells the new address.
    const [address, about] = (await Promise.all([
      client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name),
      client.call('SENTINEL', 'MASTER', name),
    ])) as [string[] | null, string[]];
    if (!address) throw new Error('it knows no such name');
    return {
      primary: { host: address[0]!, port: Number(address[1]) },
      epoch: Number(about[about.indexOf('config-epoch') + 1]),
    };
  });
}

/** Makes a client that connects to whoever is the primary at that time. */
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
