import { isIPv6, type LookupFunction, type Socket } from 'node:net';
import { callbackify } from 'node:util';
import { buildConnector, Client } from 'undici';
import type { Timeouts } from '../timeouts.ts';
import { connect } from './connect.ts';

/** A connection for one request at a time; opened with its first request. */
export interface Connection {
  readonly client: Client;
  /** Whether the connection has served a request before: then the service may have closed it meanwhile. */
  isReused: boolean;
}

/** The kept connections to one instance of a service. */
export interface ConnectionPool {
  /** Limit of idle connections. */
  maxIdle: number;
  acquire(): Connection;
  /** Releases a connection whose reply is complete. After any other end, destroy the connection's client. */
  release(connection: Connection): void;
  /** Closes the idle connections: if one of them was closed by the service, the others probably are, too. */
  closeIdle(): void;
}

/** Creates the pool for `address`, an instance of the service at `url`. Requests that cannot connect get NotConnected. */
export function createConnectionPool(
  url: URL,
  address: string,
  timeouts: Timeouts,
  maxIdle: number,
  lookup: LookupFunction,
): ConnectionPool {
  const origin = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}:${url.port}`;
  const begin = buildConnector({ allowH2: false, timeout: 0, lookup });
  const open = callbackify((target: buildConnector.Options) =>
    // The socket's events report the same as the callback.
    connect(url, timeouts, () => begin(target, () => undefined) as unknown as Socket),
  );
  /** LIFO, so that surplus connections time out. */
  let idle: Connection[] = [];

  function create(): Connection {
    const client = new Client(origin, {
      connect: (target, done) => open(target, done as (error: Error | null, socket: Socket) => void),
      // Disabled: an attempt has its own limits, which consider the client.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: timeouts.keepAlive,
      keepAliveMaxTimeout: timeouts.keepAlive,
    });
    const connection = { client, isReused: false };
    client.on('disconnect', () => {
      connection.isReused = false;
      if (!idle.includes(connection)) return;
      idle = idle.filter((each) => each !== connection);
      void client.destroy();
    });
    return connection;
  }

  const pool: ConnectionPool = {
    maxIdle,
    acquire: () => idle.pop() ?? create(),
    release(connection) {
      if (idle.length >= pool.maxIdle) return void connection.client.destroy();
      connection.isReused = true;
      idle.push(connection);
    },
    closeIdle() {
      for (const { client } of idle.splice(0)) void client.destroy();
    },
  };
  return pool;
}
