import { withClient } from '@content-platform/chassis';
import pg from 'pg';
import { Problem } from './problem.ts';

/** URLs of the platform's two databases, with the owner's credentials. */
export interface Databases {
  platform: string;
  logs: string;
  version: string;
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/**
 * Creates the missing databases.
 * @param url URL of the server and the platform's database (default `platform`); the database `logs` is on the same server
 * @throws Problem if the server refuses
 */
export async function ensureDatabases(url: string): Promise<Databases> {
  const named = decodeURIComponent(new URL(url).pathname.slice(1));
  const platform = named === '' || named === 'postgres' ? 'platform' : named;
  try {
    const version = await withClient(withDatabase(url, 'postgres'), async (client) => {
      for (const name of [platform, 'logs']) {
        const found = await client.query('select 1 from pg_database where datname = $1', [name]);
        if (found.rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(name)}`);
      }
      const { rows } = await client.query<{ server_version: string }>('show server_version');
      return rows[0]?.server_version.split(' ')[0] ?? '';
    });
    return { platform: withDatabase(url, platform), logs: withDatabase(url, 'logs'), version };
  } catch (error) {
    const { host } = new URL(url);
    throw new Problem(
      `PostgreSQL at ${host} refuses: ${(error as Error).message || String(error)}. Is DATABASE_URL right?`,
    );
  }
}
