import { once } from 'node:events';
import { until } from './wait.ts';

const inspector = 'http://127.0.0.1:9229/json/list';
const held = '({ pid: process.pid, heap: process.memoryUsage().heapUsed })';

const addressOf = async (): Promise<string | undefined> => {
  const list = (await (await fetch(inspector)).json()) as { webSocketDebuggerUrl: string }[];
  return list[0]?.webSocketDebuggerUrl;
};

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
 * Returns the used heap of a process after a garbage collection, in bytes. SIGUSR1 opens the inspector on one port: one
 * process at a time.
 */
export async function heapOf(pid: number): Promise<number> {
  process.kill(pid, 'SIGUSR1');
  const session = await openSession(await until('its inspector is open', addressOf, 30_000));
  await session.ask('HeapProfiler.collectGarbage');
  const { result } = await session.ask('Runtime.evaluate', { expression: held, returnByValue: true });
  const { pid: answered, heap } = result!.value as { pid: number; heap: number };
  const expression = "setTimeout(() => process.getBuiltinModule('inspector').close(), 50)";
  await session.ask('Runtime.evaluate', { expression });
  session.close();
  const isClosed = () =>
    fetch(inspector).then(
      () => false,
      () => true,
    );
  await until('its inspector is closed', isClosed, 30_000);
  if (answered !== pid) throw new Error(`process ${answered} answered for ${pid}`);
  return heap;
}
