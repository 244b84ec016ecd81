import { isIPv6, type LookupFunction, type Socket } from 'node:net';
import { callbackify } from 'node:util';
import { buildConnector, Client, type Dispatcher } from 'undici';
import type { Timeouts } from '../timeouts.ts';
import { connect } from './connect.ts';
import type { Transport } from './transport.ts';

/** A connection for one request at a time; opened with its first request. */
interface Connection {
  readonly client: Client;
  /** Whether the connection has served a request before: then the service may have closed it meanwhile. */
  isReused: boolean;
}

/** The kept connections to one instance of a service. */
export type ConnectionPool = ReturnType<typeof createConnectionPool>;

/** Creates the pool for `address`, an instance of the service at `url`. Requests that cannot connect get ConnectionFailed. */
export function createConnectionPool(
  url: URL,
  address: string,
  timeouts: Timeouts,
  maxIdle: number,
  lookup: LookupFunction,
) {
  const origin = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}:${url.port}`;
  const open = buildConnector({ allowH2: false, timeout: 0, lookup });
  const connectTo = callbackify((target: buildConnector.Options) =>
    // The socket's events report the same as the callback.
    connect(url, timeouts, () => open(target, () => undefined) as unknown as Socket),
  );
  /** LIFO, so that surplus connections time out. */
  let idle: Connection[] = [];

  function create(): Connection {
    const client = new Client(origin, {
      connect: (target, done) => connectTo(target, done as (error: Error | null, socket: Socket) => void),
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

  const pool = {
    maxIdle,
    acquire: (): Connection => idle.pop() ?? create(),
    /** Releases a connection whose reply is complete. After any other end, destroy its client. */
    release(connection: Connection): void {
      if (idle.length >= pool.maxIdle) return void connection.client.destroy();
      connection.isReused = true;
      idle.push(connection);
    },
    /** Closes the idle connections: if the service closed one of them, it probably closed all. */
    closeIdle(): void {
      for (const { client } of idle.splice(0)) void client.destroy();
    },
  };
  return pool;
}

/** Sends a request without a body, or with a fully buffered body, over a pooled connection with undici. */
export const forwardBuffered: Transport = (request, headers, response, { pool }, events) => {
  const connection = pool.acquire();
  const { client } = connection;
  let controller: Dispatcher.DispatchController | undefined;
  client.dispatch(
    {
      method: request.method as Dispatcher.HttpMethod,
      path: request.url,
      headers,
      body: response.locals.body ?? null,
      // undici closes a connection after HEAD, in case the server sends a body. The services' Node servers send none.
      reset: false,
    },
    {
      onRequestStart(started) {
        controller = started;
        events.onSending();
      },
      onResponseStart(started, status, replied) {
        // The client needs no interim replies.
        if (status < 200) return;
        if (!events.onHeaders(status, replied)) started.abort(new Error('the reply cannot be forwarded'));
      },
      onResponseData(started, chunk) {
        events.onData();
        if (response.write(chunk)) return;
        started.pause();
        response.once('drain', () => started.resume());
      },
      onResponseEnd() {
        pool.release(connection);
        response.end();
        events.onEnd();
      },
      onResponseError(_started, error) {
        void client.destroy();
        events.onError(error);
      },
    },
  );
  return {
    // Not a getter: for each object with its own getter V8 creates a hidden class, which keeps the whole request until a
    // full garbage collection.
    isReused: () => connection.isReused,
    abort() {
      controller?.abort(new Error('the request has ended'));
      void client.destroy();
    },
  };
};
