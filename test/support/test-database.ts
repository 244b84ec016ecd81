import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { stack } from './stack.ts';

export interface TestDatabase {
  /** Address with the owner's credentials. */
  url: string;
  drop(): Promise<void>;
}

/** An empty database of its own on the stack's PostgreSQL server; with a locale (ICU's) other than the server's. */
export async function createTestDatabase(locale?: string): Promise<TestDatabase> {
  const server = stack().postgres;
  const name = `test_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string) => {
    const client = new pg.Client(server);
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  const options = locale ? `TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${locale}'` : '';
  await run(`CREATE DATABASE ${name} ${options}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => run(`DROP DATABASE ${name} WITH (FORCE)`) };
}
