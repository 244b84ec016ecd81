import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { constrainedMemory } from 'node:process';
import {
  connectDatabase,
  type ConfigOf,
  createIdempotency,
  createInternalEndpoints,
  createServiceFetch,
  eraseDeletedUsers,
  jsonArray,
  migrateService,
  observe,
  type ProcessContext,
  rowsOf,
  serveExport,
  type StartedService,
  startRetention,
  tokensFromAuth,
} from '@content-platform/chassis';
import { upload } from '@content-platform/contract';
import { createMediaUpload } from './app.ts';
import type { mediaUploadConfig } from './config.ts';
import { createFileStore, type File, schema } from './file-store.ts';
import { mediaFile } from './media-file.ts';
import { createUploadMetrics } from './metrics.ts';
import { createPool, type PoolOptions, poolSizeFor } from './processing/pool.ts';
import { quotaOf } from './quota.ts';
import { storeFromConfig } from './stores/from-config.ts';
import { removePending } from './sweep.ts';
import { createWorkspace } from './workspace.ts';

/** Uploads that may wait for each worker process; with this limit the last one waits only a few seconds. */
const maxWaitingPerWorker = 8;

/** Connects to the database and the store, starts the worker processes and builds the app. */
export async function startMediaUpload(
  process: ProcessContext<ConfigOf<typeof mediaUploadConfig>>,
  forTests: Partial<PoolOptions> = {},
): Promise<StartedService> {
  const { config, logger, metrics, onStop } = process;
  const { DATABASE_URL: url, MEDIA_FOLDER: folder, AUTH_INTERNAL_URL: authInternalUrl } = config;
  await migrateService('media-upload', url, logger);
  const database = connectDatabase(process, url);

  const store = await storeFromConfig(config);
  onStop(() => store.close());
  const files = createFileStore(database, store.name, quotaOf(config));
  await files.assignStore();
  const workFolder = join(folder, 'tmp');
  const workspace = await createWorkspace(workFolder);
  const idempotency = createIdempotency(database.query, schema);
  onStop(startRetention(database.query, () => ({ 'idempotency keys': idempotency.deleteExpired }), logger));

  const abandoned = () => ({
    'abandoned uploads': () => workspace.removeAbandoned(),
    'files of deleted rows': () => removePending(files, store),
  });
  onStop(startRetention(database.query, abandoned, logger, { everyMs: 60_000 }));
  const uploadMetrics = createUploadMetrics(metrics, folder);
  const { size, maxBytes } = poolSizeFor(availableParallelism(), constrainedMemory());
  const pool = createPool({
    folder: workFolder,
    size,
    maxWaiting: size * maxWaitingPerWorker,
    waitMs: 15_000,
    jobMs: 20_000,
    maxBytes,
    logger,
    onDone: (seconds) => observe(uploadMetrics.processing, {}, seconds),
    ...forTests,
  });
  onStop(() => pool.close());
  const tokens = tokensFromAuth(process);
  eraseDeletedUsers(process, createServiceFetch(authInternalUrl, 'media-upload', config.SERVICE_SECRET), {
    async erase(ids) {
      await files.eraseUsers(ids);
      await idempotency.erase(ids);
      await removePending(files, store);
      await files.checkOtherStores();
    },
    query: database.query,
    schema,
  });

  const internal = createInternalEndpoints(tokens, logger);
  serveExport(internal, async (userId) =>
    jsonArray(await rowsOf<File>((last) => files.list(userId, last?.id, 500)), (file) => {
      // The largest variant, because the upload of an image is not served.
      const { url, bytes } = mediaFile(config.PUBLIC_URL, file).variants.at(-1)!;
      return [JSON.stringify({ id: file.id, name: file.name, bytes, url })];
    }),
  );

  return {
    internal: internal.router,
    app: createMediaUpload({
      files,
      store,
      pool,
      workspace,
      idempotency,
      uploadMetrics,
      publicUrl: config.PUBLIC_URL,
      tokens,
      logger,
      metrics,
    }),
    // The maximum reply time in the contract.
    gracePeriodMs: upload.replyWithinSeconds * 1_000,
    checks: {
      postgres: { required: true, check: () => database.ping() },
      store: { required: true, check: () => store.check() },
      tokens: tokens.check,
      // Without worker processes files can still be read and deleted.
      worker_processes: { required: false, check: () => pool.check() },
    },
  };
}
