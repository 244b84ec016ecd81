import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import { createIdempotency, createMetrics, type TokenVerifier } from '@content-platform/chassis';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { userCaller } from '../../../test/support/user-caller.ts';
import { createMediaUpload } from '../app.ts';
import { createFileStore, type FileStore, schema } from '../file-store.ts';
import { createUploadMetrics } from '../metrics.ts';
import type { Quota } from '../quota.ts';
import type { Store } from '../stores/store.ts';
import { createWorkspace } from '../workspace.ts';
import type { PoolOptions } from '../processing/pool.ts';
import { createTestPool } from './pools.ts';
import { createMediaFixture, keysIn, type MediaFixture } from './media-fixture.ts';

/** A token is the id of its user. */
const tokens: TokenVerifier = { verify: async (token) => userCaller(Number(token)) };

/** Parts of the service that a test replaces. */
interface Replaced {
  store?: Partial<Store>;
  files?: Partial<FileStore>;
  pool?: Partial<PoolOptions>;
  quota?: Quota;
}

/** Gives each test an empty database and an empty store; `start` starts the service in this process on them. */
export function useService() {
  const services: Awaited<ReturnType<typeof startService>>[] = [];
  const test = {
    fixture: useStarted(createMediaFixture),
    async start(replaced: Replaced = {}) {
      const service = await startService(test.fixture, replaced);
      services.push(service);
      return service;
    },
    /** Returns the keys of all files in the store. */
    keys: () => keysIn(test.fixture.store),
  };
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.stop()));
    const tables = 'media.file, media.pending_object, media.idempotency_key';
    await test.fixture.database.query('empty', `TRUNCATE ${tables}`);
    for (const key of await test.keys()) await test.fixture.store.remove(key);
  });
  return test;
}

async function startService(fixture: MediaFixture, { store, files, pool: poolOptions, quota }: Replaced) {
  const { database, folder, logger } = fixture;
  const metrics = createMetrics('media-upload');
  let processed = 0;
  const root = join(folder, 'tmp');
  const workspace = await createWorkspace(root);
  const pool = await createTestPool({ folder: root, onDone: () => (processed += 1), ...poolOptions });
  const app = createMediaUpload({
    files: { ...createFileStore(database, fixture.store.name, quota), ...files },
    store: { ...fixture.store, ...store },
    pool,
    workspace,
    idempotency: createIdempotency(database.query, schema),
    uploadMetrics: createUploadMetrics(metrics, folder),
    publicUrl: 'http://platform.test',
    tokens,
    logger,
    metrics,
  });
  const { origin, close } = await startHttpServer(app);
  const as = (user: number) => ({ Authorization: `Bearer ${user}` });
  return {
    async upload(
      bytes: Buffer<ArrayBuffer>,
      user = 1,
      signal?: AbortSignal,
      headers: Record<string, string> = {},
    ) {
      const body = new FormData();
      body.set('file', new File([bytes], 'file'));
      const response = await fetch(`${origin}/api/upload`, {
        method: 'POST',
        body,
        headers: { ...as(user), ...headers },
        signal: signal ?? null,
      });
      return {
        status: response.status,
        retryAfter: response.headers.get('retry-after'),
        body: (await response.json()) as { id: number; error?: string },
      };
    },
    get: (path: string) => fetch(origin + path, { headers: as(1) }),
    async remove(id: number) {
      const response = await fetch(`${origin}/api/media/${id}`, { method: 'DELETE', headers: as(1) });
      return response.status;
    },
    /** Returns how many files the worker processes have inspected. */
    processed: () => processed,
    /** Returns the folders of uploads in progress or left behind. */
    underWay: () => readdir(root),
    /** Returns the value of uploads_total{outcome}. */
    async counted(outcome: string): Promise<number> {
      const { values } = (await metrics.registry.getSingleMetric('uploads_total')!.get()) as {
        values: { value: number; labels: { outcome?: string } }[];
      };
      return values.find(({ labels }) => labels.outcome === outcome)!.value;
    },
    async stop() {
      close();
      await pool.close();
    },
  };
}
