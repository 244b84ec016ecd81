import { type Logger, migrate, migrateIdempotency } from '@content-platform/chassis';

export const schema = 'media';

export async function migrateMedia(url: string, logger: Logger): Promise<void> {
  await migrate({ url, schema, folder: new URL('migrations/', import.meta.url), logger });
  await migrateIdempotency({ url, schema, logger });
}
