import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { internalPortOffset } from '@content-platform/contract';
import { freeRow } from '../../test/support/ports.ts';
import { sayOk } from './upstream.ts';

type Readiness = 'ready' | 'unready' | 'silent';

/** A simulated process of a service, which answers requests and probes. */
export interface TestInstance {
  url: string;
  readiness: Readiness;
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  /** Number of requests that arrived at the instance. */
  requests: number;
  /** Open client connections. */
  connections: number;
  mostProbesAtOnce: number;
  close(): Promise<void>;
}

export interface TestInstanceOptions {
  /** Starts an instance. Instances of one service have the same port and different IP addresses: 127.0.0.2, … */
  address?: string;
  port?: number;
  readiness?: Readiness;
}

export async function startInstance(options: TestInstanceOptions = {}): Promise<TestInstance> {
  const { address = '127.0.0.1', readiness = 'ready' } = options;
  const port = options.port ?? (await freeRow(1));
  let probes = 0;
  const server = createServer((request, response) => {
    instance.requests += 1;
    instance.answer(request, response);
  });
  server.on('connection', (socket) => {
    instance.connections += 1;
    socket.once('close', () => (instance.connections -= 1));
  });
  const internal = createServer((_request, response) => {
    instance.mostProbesAtOnce = Math.max(instance.mostProbesAtOnce, (probes += 1));
    response.once('close', () => (probes -= 1));
    if (instance.readiness === 'silent') return;
    response.writeHead(instance.readiness === 'ready' ? 200 : 503).end();
  });
  await once(server.listen(port, address), 'listening');
  await once(internal.listen(port + internalPortOffset, address), 'listening');
  const instance: TestInstance = {
    url: `http://${address}:${port}`,
    readiness,
    answer: sayOk,
    requests: 0,
    connections: 0,
    mostProbesAtOnce: 0,
    async close() {
      for (const each of [server, internal]) {
        each.close();
        each.closeAllConnections();
      }
      await Promise.all([server, internal].map((each) => each.listening && once(each, 'close')));
    },
  };
  return instance;
}
