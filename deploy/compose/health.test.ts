import { expect, test } from '@jest/globals';
import { internalPortOffset } from '@content-platform/contract';
import { startHttpServer } from '../../test/support/http-server.ts';
import { ROOT } from '../local/config.ts';
import { runCommand } from '../local/run-command.ts';

/** Runs the check of a container whose internal listener has this origin. Returns the exit code. */
async function check(origin: string): Promise<number> {
  const env = { PORT: String(Number(new URL(origin).port) - internalPortOffset) };
  return (await runCommand('bash', ['deploy/compose/health.sh'], { cwd: ROOT, env, within: 10_000 })).code;
}

test('the health check of a container fails unless the process is ready', async () => {
  let status = 200;
  let replies = true;
  const { origin, close } = await startHttpServer((request, response) => {
    if (replies) response.writeHead(request.url === '/health/ready' ? status : 404).end();
  });
  try {
    expect(await check(origin)).toBe(0);
    status = 503;
    expect(await check(origin)).toBe(1);
    replies = false;
    expect(await check(origin)).toBe(1);
  } finally {
    close();
  }
  expect(await check(origin)).toBe(1);
});
