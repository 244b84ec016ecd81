import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';

const listener = `
const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));
`;

/** Opens a port that does not answer SYN packets: its process is stopped and its accept queue is full. */
export async function startBlackholeServer() {
  const child = spawn(process.execPath, ['-e', listener], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line);
  child.kill('SIGSTOP');
  const queued: Socket[] = [];
  for (let connected = true; connected;) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    queued.push(socket);
    await Promise.race([once(socket, 'connect'), sleep(300)]);
    // Waits one more turn of the event loop, because this process may have been busy.
    await setImmediate();
    connected = !socket.connecting;
  }
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      for (const socket of queued) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}
