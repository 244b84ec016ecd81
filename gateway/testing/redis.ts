import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../deploy/local/ports.ts';
import { until } from '../../test/support/wait.ts';

/** A real Redis of a test's own that can be stopped in every way. */
export async function startRedis() {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'gateway-redis-'));
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  const admin = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on('error', () => undefined);
  await until('Redis answers', async () => (await admin.ping()) === 'PONG');
  return {
    url: `redis://127.0.0.1:${port}`,
    admin,
    /** It hangs: connections stay open, nothing is answered. */
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop() {
      admin.disconnect();
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
