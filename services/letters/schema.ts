import { migrate, migrateIdempotency, type Logger } from '@content-platform/chassis';

/** Makes the service's schema, or brings it up to date. */
export async function migrateLetters(url: string, logger: Logger): Promise<void> {
  const schema = 'letters';
  await migrate({ url, schema, folder: new URL('migrations/', import.meta.url), logger });
  await migrateIdempotency({ url, schema, logger });
}
