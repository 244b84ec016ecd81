import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createIdempotency, type TokenVerifier } from '@content-platform/chassis';
import { createMediaUpload } from '../app.ts';
import { createUploadMetrics } from '../metrics.ts';
import { schema } from '../schema.ts';
import type { Store } from '../stores/store.ts';
import { createWorkspace } from '../workspace.ts';
import type { PoolOptions } from '../processing/pool.ts';
import { createTestPool } from './pools.ts';
import type { Scene } from './scene.ts';

/** A token is a user's id. */
const tokens = {
  verify: (token: string) =>
    Promise.resolve({
      kind: 'user' as const,
      id: Number(token),
      sessionId: 'x',
      mustChangePassword: false,
      scopes: new Set(),
    }),
} as TokenVerifier;

export type TestService = Awaited<ReturnType<typeof startService>>;

/** The service in this process, with the scene's database, over `store`. */
export async function startService(
  { database, files, folder, logger, metrics }: Scene,
  store: Store,
  poolOptions: Partial<PoolOptions> = {},
) {
  let processed = 0;
  const pool = await createTestPool({ onDone: () => (processed += 1), ...poolOptions });
  const root = join(folder, 'tmp');
  const app = createMediaUpload({
    files,
    store,
    pool,
    workspace: await createWorkspace(root),
    idempotency: createIdempotency(database.query, schema),
    uploadMetrics: createUploadMetrics(metrics),
    publicUrl: 'http://platform.test',
    tokens,
    logger,
    metrics,
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
    async get(path: string, headers: Record<string, string> = {}, user = 1) {
      const response = await fetch(origin + path, { headers: { ...as(user), ...headers } });
      return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
    },
    async remove(id: number, user = 1) {
      const response = await fetch(`${origin}/api/media/${id}`, { method: 'DELETE', headers: as(user) });
      return response.status;
    },
    /** How many files the worker processes have inspected. */
    processed: () => processed,
    /** Uploads that are under way, or were left behind. */
    underWay: () => readdir(root),
    /** uploads_total{outcome}. */
    async counted(outcome: string): Promise<number> {
      const { values } = (await metrics.registry.getSingleMetric('uploads_total')!.get()) as {
        values: { value: number; labels: { outcome?: string } }[];
      };
      return values.find(({ labels }) => labels.outcome === outcome)!.value;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await pool.close();
    },
  };
}
