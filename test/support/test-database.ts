import { randomBytes } from 'node:crypto';
import pg from 'pg';
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

/** Creates a database on the stack's PostgreSQL server. `url` has the owner's credentials. */
export async function createTestDatabase(origin: Origin = {}) {
  const server = stack().postgres;
  const name = `test_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string) => {
    const client = new pg.Client(server);
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`CREATE DATABASE ${name} ${optionsOf(origin)}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => run(`DROP DATABASE ${name} WITH (FORCE)`) };
}
