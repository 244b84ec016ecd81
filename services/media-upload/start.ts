import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { constrainedMemory } from 'node:process';
import type { z } from 'zod';
import {
  createDatabase,
  createIdempotency,
  observe,
  type Process,
  type Running,
  startUpkeep,
  tokensFromAuth,
} from '@content-platform/chassis';
import { upload } from '@content-platform/contract';
import { createMediaUpload } from './app.ts';
import type { mediaUploadConfig } from './config.ts';
import { createFileStore } from './file-store.ts';
import { createUploadMetrics } from './metrics.ts';
import { childrenFor } from './processing/children.ts';
import { createPool, type PoolOptions } from './processing/pool.ts';
import { migrateMedia, schema } from './schema.ts';
import { storeFromConfig } from './stores/from-config.ts';
import { createWorkspace } from './workspace.ts';

type Config = z.output<z.ZodObject<typeof mediaUploadConfig>>;

/** Uploads that may wait for each child, so that the last of them waits some seconds only. */
const waitingPerChild = 8;

/** As long as the contract gives a reply. Ms. */
const finishMs = upload.replyWithinSeconds * 1_000;

/** Brings up what the service stands on, and builds its app. */
export async function startMediaUpload(
  process: Process<Config>,
  forTests: Partial<PoolOptions> = {},
): Promise<Running> {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs, MEDIA_FOLDER: folder } = config;
  await migrateMedia(url, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs });
  onStop(() => database.close());

  const store = await storeFromConfig(config);
  onStop(() => store.close());
  const files = createFileStore(database.query, store.name);
  await files.adopt();
  const workspace = await createWorkspace(join(folder, 'tmp'));
  const idempotency = createIdempotency(database.query, schema);
  onStop(startUpkeep(database.query, () => ({ 'idempotency keys': () => idempotency.forget() }), logger));

  onStop(
    startUpkeep(database.query, () => ({ 'abandoned uploads': () => workspace.tidy() }), logger, 60_000),
  );
  const uploadMetrics = createUploadMetrics(metrics);
  const { size, maxBytes } = childrenFor(availableParallelism(), constrainedMemory());
  const pool = createPool({
    size,
    maxWaiting: size * waitingPerChild,
    waitMs: 15_000,
    jobMs: 20_000,
    maxBytes,
    logger,
    onDone: (seconds) => observe(uploadMetrics.processing, {}, seconds),
    ...forTests,
  });
  onStop(() => pool.close());

  return {
    app: createMediaUpload({
      files,
      store,
      pool,
      workspace,
      idempotency,
      uploadMetrics,
      publicUrl: config.PUBLIC_URL,
      tokens: tokensFromAuth(process),
      logger,
      metrics,
    }),
    finishMs,
    checks: {
      postgres: { required: true, check: () => database.ping() },
      store: { required: true, check: () => store.check() },
    },
  };
}
