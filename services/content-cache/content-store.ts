import type { Database } from '@content-platform/chassis';
import type { Model, View } from '@content-platform/contract';
import type { LoadedRecord } from './cache/index.ts';

interface Row {
  title: string;
  version: string;
  updated_at: Date;
  body: string;
}

/** Numbers and body go from PostgreSQL into the reply as text, so nothing is rounded. */
function payload(view: View, model: Model, id: number, row: Row): string {
  const body = view === 'full' ? `"body":${row.body},` : '';
  const title = JSON.stringify(row.title);
  const updatedAt = row.updated_at.toISOString();
  return `{"model":"${model}","id":${id},"title":${title},${body}"version":${row.version},"updated_at":"${updatedAt}"}`;
}

const columns = { full: 'title, version, updated_at, body::text', summary: 'title, version, updated_at' };

export type ContentStore = ReturnType<typeof createContentStore>;

/** Reads content records as the JSON text of their reply. */
export function createContentStore(query: Database['query']) {
  return {
    /**
     * Returns one view of a record, null when it does not exist. Runs one statement outside any transaction, which lets
     * the cache keep the result. @throws HttpError 503 while PostgreSQL is unreachable
     */
    async load(model: Model, id: number, view: View): Promise<LoadedRecord | null> {
      const text = `SELECT ${columns[view]} FROM content.record WHERE model = $1 AND id = $2`;
      const { rows } = await query<Row>('read_record', text, [model, id]);
      const row = rows[0];
      return row ? { version: Number(row.version), payload: payload(view, model, id, row) } : null;
    },
  };
}
