import { beforeEach, expect, test } from '@jest/globals';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../test/support/wait.ts';
import type { PoolOptions } from '../processing/pool.ts';
import { createFailingFork } from '../testing/failing-fork.ts';
import { useService } from '../testing/service.ts';

/** More than the worker processes, the queue, and the slots of one user. */
const failures = 10;

const current = useService();
let service: Awaited<ReturnType<typeof current.start>>;
/** The worker processes finish their uploads once this file exists. */
let gate: string;
beforeEach(async () => {
  // Worker processes of a service that runs as root have another user.
  const folder = await mkdtemp(join(current.fixture.folder, 'gates-'));
  await chmod(folder, 0o777);
  await chmod(current.fixture.folder, 0o711);
  gate = join(folder, 'gate');
});

async function start(options: Partial<PoolOptions>): Promise<void> {
  const program = new URL('../testing/scripted-worker.ts', import.meta.url);
  service = await current.start({ pool: { program, size: 2, maxWaiting: 2, ...options } });
}

const uploads = Array.from({ length: failures }, (_, index) => `upload ${index}`);

/** Each upload has its own bytes, key and user, so that several can run at once. */
function send(name: string) {
  const bytes = Buffer.from(`until ${gate} ${name}`);
  return service.upload(bytes, uploads.indexOf(name) + 1, undefined, { 'Idempotency-Key': name });
}

const unavailable = {
  status: 503,
  retryAfter: expect.stringMatching(/^\d+$/),
  body: { error: 'service_unavailable' },
};

/** Repeats each failed upload with the same key. */
async function expectSuccess(): Promise<void> {
  expect(await service.underWay()).toEqual([]);
  expect(await service.counted('busy')).toBe(failures);
  await writeFile(gate, '');
  for (const name of uploads) expect(await send(name)).toMatchObject({ status: 201 });
}

test('returns 503 while worker processes fail to start, then 201 for the same key', async () => {
  const failing = createFailingFork('event');
  await start({ startProcess: failing.fork });
  for (const name of uploads) expect(await send(name)).toMatchObject(unavailable);
  failing.state.failure = undefined;
  await expectSuccess();
});

test('returns 503 when a worker process is killed from outside, then 201 for the same key', async () => {
  await start({});
  for (const name of uploads) {
    const sent = send(name);
    // A file that is still empty would be pid 0: this process group.
    const pid = await until('it has the upload', async () => Number(await readFile(`${gate}.pid`)) || false);
    await rm(`${gate}.pid`);
    process.kill(pid, 'SIGKILL');
    expect(await sent).toMatchObject(unavailable);
  }
  await expectSuccess();
});
