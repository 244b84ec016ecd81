import { migrate, migrateIdempotency, type Logger } from '@content-platform/chassis';

/** Creates or updates the service's schema. */
export async function migrateLetters(url: string, logger: Logger): Promise<void> {
  const schema = 'letters';
  await migrate({ url, schema, folder: new URL('migrations/', import.meta.url), logger });
  await migrateIdempotency({ url, schema, logger });
}
