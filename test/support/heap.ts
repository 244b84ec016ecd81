import { once } from 'node:events';
import { until } from './wait.ts';

/**
 * Memory of a process after a garbage collection, in bytes. `resources` keep the process alive, for example sockets and
 * timers.
 */
export interface Held {
  heap: number;
  external: number;
  rss: number;
  sockets: number;
  resources: number;
}

const inspector = 'http://127.0.0.1:9229/json/list';
const held = `(() => {
  const { heapUsed: heap, external, rss } = process.memoryUsage();
  const names = process.getActiveResourcesInfo();
  const sockets = names.filter((name) => name === 'TCPSocketWrap').length;
  return { pid: process.pid, heap, external, rss, sockets, resources: names.length };
})()`;

const addressOf = async (): Promise<string | undefined> => {
  const list = (await (await fetch(inspector)).json()) as { webSocketDebuggerUrl: string }[];
  return list[0]?.webSocketDebuggerUrl;
};

/** A connection to the inspector that sends one command at a time. */
async function openSession(address: string) {
  const socket = new WebSocket(address);
  await once(socket, 'open');
  let id = 0;
  return {
    async ask(method: string, params: object = {}): Promise<{ result?: { value: unknown } }> {
      socket.send(JSON.stringify({ id: ++id, method, params }));
      for (;;) {
        const [{ data }] = (await once(socket, 'message')) as [{ data: string }];
        const answer = JSON.parse(data) as { id?: number; result: { result?: { value: unknown } } };
        if (answer.id === id) return answer.result;
      }
    },
    close: () => socket.close(),
  };
}

/**
 * Forces a garbage collection in a Node process and returns what remains. SIGUSR1 (Linux, macOS) opens the inspector,
 * always on the same port, so inspect one process at a time.
 */
export async function lookAt(pid: number): Promise<Held> {
  process.kill(pid, 'SIGUSR1');
  const session = await openSession(await until('its inspector is open', addressOf, 30_000));
  await session.ask('HeapProfiler.collectGarbage');
  const { result } = await session.ask('Runtime.evaluate', { expression: held, returnByValue: true });
  const { pid: answered, ...found } = result!.value as Held & { pid: number };
  const expression = "setTimeout(() => process.getBuiltinModule('inspector').close(), 50)";
  await session.ask('Runtime.evaluate', { expression });
  session.close();
  await until(
    'its inspector is closed',
    () =>
      fetch(inspector).then(
        () => false,
        () => true,
      ),
    30_000,
  );
  if (answered !== pid) throw new Error(`process ${answered} answered for ${pid}`);
  return found;
}
