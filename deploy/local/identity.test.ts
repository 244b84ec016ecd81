import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { identityOf, isRunning } from './identity.ts';
import { freePort, isFree } from './ports.ts';

/** A process that listens and whose memory and threads take a while to release. */
const server = (port: number) => `
  globalThis.memory = Buffer.alloc(300e6, 1);
  require('net').createServer().listen(${port}, '127.0.0.1', () => console.log('up'));
  for (let n = 0; n < 4; n += 1) require('crypto').pbkdf2('a', 'b', 3e6, 64, 'sha512', () => {});`;

test('a process that is not running any more has released its port', async () => {
  for (let n = 0; n < 8; n += 1) {
    const port = await freePort();
    const child = spawn(process.execPath, ['-e', server(port)], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const identity = identityOf(child.pid!)!;
    expect(isRunning(identity)).toBe(true);
    child.kill('SIGKILL');
    const limit = performance.now() + 30_000;
    // No pause, because the interval is short.
    while (isRunning(identity)) if (performance.now() > limit) throw new Error('the process still runs');
    expect(await isFree(port)).toBe(true);
  }
});
