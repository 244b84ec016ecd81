// Migrates the databases with the owner's credentials, and creates a role for each service. Compose and Kubernetes run it
// before the processes of a release start. These processes never get the owner's credentials.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { services } from '@content-platform/contract/services';
import { z } from 'zod';
import { ConfigError, databaseUrl, readConfig } from './config.ts';
import { createLogger } from './logger.ts';
import { prepareDatabases } from './prepare-databases.ts';

// As the first process of a container, Node ignores signals without a listener.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
try {
  const config = readConfig({
    // Both URLs contain the owner's credentials. A process without the platform's database needs only the second URL.
    DATABASE_URL: databaseUrl.optional(),
    LOGS_DATABASE_URL: databaseUrl.optional(),
    // One file for each service, with its name and one of its database URLs.
    ROLES_FOLDER: z.string().default('/run/secrets/roles'),
  });
  const found = readdirSync(config.ROLES_FOLDER);
  for (const { name } of services.filter((service) => found.includes(service.name))) {
    await prepareDatabases(name, {
      platform: config.DATABASE_URL,
      logs: config.LOGS_DATABASE_URL,
      roleUrl: readFileSync(join(config.ROLES_FOLDER, name), 'utf8').trim(),
      logger: createLogger(name),
    });
    console.log(`${name}: the databases are ready`);
  }
} catch (error) {
  console.error(error instanceof ConfigError ? `migrate: ${error.message}` : error);
  process.exitCode = 1;
}
