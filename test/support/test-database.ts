import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { withDatabase } from './connections.ts';
import { stack } from './stack.ts';

export type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>;

/** The source of the database; by default an empty template. */
interface Origin {
  locale?: string;
  /** The database to copy; it must have no connections. */
  copyOf?: { url: string };
}

function optionsOf({ locale, copyOf }: Origin): string {
  if (copyOf) return `TEMPLATE ${new URL(copyOf.url).pathname.slice(1)}`;
  return locale ? `TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${locale}'` : '';
}

const onServer = <T>(work: (client: pg.Client) => Promise<T>) => withDatabase(stack().postgres, work);

const urlOf = (name: string): string => new URL(`/${name}`, stack().postgres).href;

/** Creates a database on the stack's PostgreSQL server. `url` has the owner's credentials. */
export async function createTestDatabase(origin: Origin = {}) {
  const name = `test_${randomBytes(6).toString('hex')}`;
  // The default strategy writes each page to the WAL, which takes three times as much CPU time.
  await onServer((client) => client.query(`CREATE DATABASE ${name} STRATEGY file_copy ${optionsOf(origin)}`));
  const drop = () => onServer((client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
  return { url: urlOf(name), drop };
}

/** Creates a copy of the database `template`. The first caller creates the template and fills it with `prepare`. */
export async function createPreparedDatabase(template: string, prepare: (url: string) => Promise<unknown>) {
  await onServer(async (client) => {
    // Test files run in parallel. The lock ends with the connection.
    await client.query('SELECT pg_advisory_lock(hashtext($1))', [template]);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [template]);
    if (rowCount) return;
    const { url } = await createTestDatabase();
    await prepare(url);
    await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} RENAME TO ${template}`);
  });
  return createTestDatabase({ copyOf: { url: urlOf(template) } });
}
