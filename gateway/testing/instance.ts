import { once } from 'node:events';
import { createServer } from 'node:http';
import { internalPortOffset } from '@content-platform/contract';
import { freeRow } from '../../test/support/ports.ts';
import { sayOk } from './upstream.ts';

/** Without these headers, Node's client treats a 101 as a normal reply. */
const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' };
/** The status of the reply to a probe. No probe asks for 101. */
const statuses = { ready: 200, unready: 503, switching: 101 };
type Readiness = keyof typeof statuses | 'silent';

export interface TestInstanceOptions {
  /** Instances of one service have the same port and different IP addresses: 127.0.0.2, … */
  address?: string;
  port?: number;
  readiness?: Readiness;
}

/** Starts a simulated process of a service, which answers requests and probes. */
export async function startInstance(options: TestInstanceOptions = {}) {
  const { address = '127.0.0.1', readiness = 'ready' as Readiness } = options;
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
    response.writeHead(statuses[instance.readiness], instance.readiness === 'switching' ? upgrade : {}).end();
  });
  await once(server.listen(port, address), 'listening');
  await once(internal.listen(port + internalPortOffset, address), 'listening');
  const instance = {
    url: `http://${address}:${port}`,
    readiness,
    answer: sayOk,
    requests: 0,
    connections: 0,
    mostProbesAtOnce: 0,
    async close(): Promise<void> {
      for (const each of [server, internal]) {
        each.close();
        each.closeAllConnections();
      }
      await Promise.all([server, internal].map((each) => each.listening && once(each, 'close')));
    },
  };
  return instance;
}
export type TestInstance = Awaited<ReturnType<typeof startInstance>>;
