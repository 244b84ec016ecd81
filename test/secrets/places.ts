import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withDatabase, withRedis } from '../support/connections.ts';
import { stack } from '../support/stack.ts';

/** Something that may contain a secret. */
export interface Place {
  /** For example `log auth.log` or `platform auth.session.device`. */
  name: string;
  content: string | Buffer;
}

function filesIn(folder: string, kind: string): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => ({
      name: `${kind} ${name}`,
      content: readFileSync(join(parentPath, name)),
    }));
}

export const logFiles = (stateFolder: string): Place[] => filesIn(join(stateFolder, 'logs'), 'log');
/** Returns all files of Redis; its append-only file also contains deleted data. */
export const redisFiles = (folder: string): Place[] => filesIn(folder, 'Redis file');

/** Returns /metrics of every process in each format. */
export async function metrics(): Promise<Place[]> {
  const accepts = ['text/plain', 'application/openmetrics-text; version=1.0.0', 'application/json'];
  const asked = Object.entries(stack().services).flatMap(([name, { internal }]) =>
    accepts.map(async (Accept) => ({
      name: `metrics of ${name}`,
      content: await (await fetch(`${internal}/metrics`, { headers: { Accept } })).text(),
    })),
  );
  return Promise.all(asked);
}

export function commandLines(): Place[] {
  const pids = Object.values(stack().services).map(({ pid }) => pid);
  return pids.map((pid) => ({ name: 'command line', content: readFileSync(`/proc/${pid}/cmdline`) }));
}

/** Returns every column of every table, including PostgreSQL's list of roles. */
export const tables = (database: string, url: string): Promise<Place[]> =>
  withDatabase(url, async (client) => {
    const { rows } = await client.query<{ table: string; column: string; place: string }>(
      `SELECT format('%I.%I', nspname, relname) AS table, quote_ident(attname) AS column,
              format('%s.%s.%s', nspname, relname, attname) AS place
       FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid JOIN pg_namespace ON relnamespace = pg_namespace.oid
       WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'm')
         AND (nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') OR relname = 'pg_authid')`,
    );
    const places: Place[] = [];
    for (const { table, column, place } of rows) {
      const text = `SELECT string_agg(${column}::text, E'\\n') AS content FROM ${table}`;
      const found = await client.query<{ content: string | null }>(text);
      places.push({ name: `${database} ${place}`, content: found.rows[0]?.content ?? '' });
    }
    return places;
  });

/** Returns every key with its value as a DUMP, with string compression disabled. */
export const redisKeys = (): Promise<Place[]> =>
  withRedis(async (redis) => {
    await redis.config('SET', 'rdbcompression', 'no');
    const places: Place[] = [];
    for await (const keys of redis.scanStream({ count: 1_000 }) as AsyncIterable<Buffer[]>) {
      for (const key of keys) {
        const content = (await redis.dumpBuffer(key)) ?? Buffer.alloc(0);
        places.push({
          name: 'Redis',
          content: Buffer.concat([Buffer.from(key), Buffer.from('\n'), content]),
        });
      }
    }
    return places;
  });
