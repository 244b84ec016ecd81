import type { Database } from '@content-platform/chassis';
import type { Model, View } from '@content-platform/contract';
import type { LoadedRecord } from './cache/index.ts';

interface Row {
  id: string;
  title: string;
  version: string;
  updated_at: Date;
  body: string;
}

/** Numbers and body go from PostgreSQL into the reply as text, so nothing is rounded. */
function payload(view: View, model: Model, row: Row): string {
  const body = view === 'full' ? `"body":${row.body},` : '';
  const title = JSON.stringify(row.title);
  const updatedAt = row.updated_at.toISOString();
  return `{"model":"${model}","id":${row.id},"title":${title},${body}"version":${row.version},"updated_at":"${updatedAt}"}`;
}

const columns = {
  full: 'id, title, version, updated_at, body::text',
  summary: 'id, title, version, updated_at',
};

export type ContentStore = ReturnType<typeof createContentStore>;

/** Reads content records as the JSON text of their reply. Every method throws 503 while PostgreSQL is unreachable. */
export function createContentStore(query: Database['query']) {
  async function read(operation: string, view: View, model: Model, rest: string, ...values: unknown[]) {
    const text = `SELECT ${columns[view]} FROM content.record WHERE model = $1 AND ${rest}`;
    const { rows } = await query<Row>(operation, text, [model, ...values]);
    return rows.map((row) => ({
      id: Number(row.id),
      version: Number(row.version),
      payload: payload(view, model, row),
    }));
  }

  return {
    /** Returns one view of a record, null if it is absent. One statement outside any transaction, as the cache requires. */
    async load(model: Model, id: number, view: View): Promise<LoadedRecord | null> {
      const [record] = await read('read_record', view, model, 'id = $2', id);
      return record ?? null;
    },
    /** Reads several records under the conditions of `load`. Absent records are not in the result. */
    async loadMany(model: Model, ids: number[], view: View): Promise<ReadonlyMap<number, LoadedRecord>> {
      const found = await read('read_records', view, model, 'id = ANY ($2)', ids);
      return new Map(found.map((record) => [record.id, record]));
    },
    /** Returns at most `limit` records whose id is above `after`, in the order of their ids. */
    list: (model: Model, view: View, after: number, limit: number) =>
      read('list_records', view, model, 'id > $2 ORDER BY id LIMIT $3', after, limit),
  };
}
