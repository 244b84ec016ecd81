import { isIPv6, type Socket } from 'node:net';
import { callbackify } from 'node:util';
import { buildConnector, Client } from 'undici';
import { connect } from './connect.ts';
import type { Timeouts } from './timeouts.ts';

/** Shorter than the 5 s after which a Node server closes an idle connection: we are always the one that closes. */
const idleMs = 4_000;

/** For one request at a time. It is opened with the first. */
export interface Connection {
  readonly client: Client;
  /** It has served a request before: its other end may be gone without our knowing. */
  isReused: boolean;
}

/** Kept connections to one process of a service. */
export interface Connections {
  /** So many idle ones are kept. */
  maxIdle: number;
  take(): Connection;
  /** Its request is over, and all is well with it. */
  giveBack(connection: Connection): void;
  /** Closes those that nobody uses: when one of them was found dead, the others are not to be trusted. */
  closeIdle(): void;
}

/**
 * Connections to `address`, which belongs to the service at `url`. Whoever takes one has it alone, and destroys its client
 * where the request does not end well. What cannot be connected fails with NotConnected.
 */
export function createConnections(
  url: URL,
  address: string,
  timeouts: Timeouts,
  maxIdle: number,
): Connections {
  const origin = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}:${url.port}`;
  const begin = buildConnector({ allowH2: false, timeout: 0 });
  const open = callbackify((target: buildConnector.Options) =>
    // Its callback tells the same as the socket's events do.
    connect(url, timeouts, () => begin(target, () => undefined) as unknown as Socket),
  );
  /** The last one that was used comes first: the others may become too many, and end. */
  let idle: Connection[] = [];

  function create(): Connection {
    const client = new Client(origin, {
      connect: (target, done) => open(target, done as (error: Error | null, socket: Socket) => void),
      // Upstream has limits of its own, which go by what the client does, too.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
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

  const connections: Connections = {
    maxIdle,
    take: () => idle.pop() ?? create(),
    giveBack(connection) {
      if (idle.length >= connections.maxIdle) return void connection.client.destroy();
      connection.isReused = true;
      idle.push(connection);
    },
    closeIdle() {
      for (const { client } of idle.splice(0)) void client.destroy();
    },
  };
  return connections;
}
