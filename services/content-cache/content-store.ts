import type { Database } from '@content-platform/chassis';
import type { Model, View } from '@content-platform/contract';
import { type LoadedRecord, tooLarge } from './cache/index.ts';

interface Row {
  id: string;
  title: string;
  version: string;
  updated_at: Date;
  /** Null if it is left out of a list that is too large. */
  body?: string | null;
}

/** Numbers and body go from PostgreSQL into the reply as text, so nothing is rounded. */
function payload(model: Model, row: Row): string {
  const body = row.body === undefined ? '' : `"body":${row.body},`;
  const title = JSON.stringify(row.title);
  const updatedAt = row.updated_at.toISOString();
  return `{"model":"${model}","id":${row.id},"title":${title},${body}"version":${row.version},"updated_at":"${updatedAt}"}`;
}

/** Bytes of the bodies in a list: 100 of the largest that are cached. More would exhaust the memory of the process. */
const maxListBytes = 100 * 256 * 1024;
const columns = 'id, title, version, updated_at';
const select = (view: View, condition: string) =>
  `SELECT ${columns}${view === 'full' ? ', body::text' : ''} FROM content.record WHERE model = $1 AND ${condition}`;
/** Leaves out a body if the bodies before it have `maxListBytes`. OFFSET 0: PostgreSQL makes each text once. */
const selectList = (view: View, condition: string) =>
  view === 'summary'
    ? select(view, condition)
    : `SELECT ${columns},
         CASE WHEN sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) < ${maxListBytes} THEN body END AS body
       FROM (${select(view, condition)} OFFSET 0) record ORDER BY id`;

export type ContentStore = ReturnType<typeof createContentStore>;

/** Reads content records as the JSON text of their reply. Every method throws 503 while PostgreSQL is unreachable. */
export function createContentStore(query: Database['query']) {
  async function read(operation: string, text: string, model: Model, ...values: unknown[]) {
    const { rows } = await query<Row>(operation, text, [model, ...values]);
    return rows.map((row) => ({
      id: Number(row.id),
      version: Number(row.version),
      payload: row.body === null ? tooLarge.payload : payload(model, row),
    }));
  }

  return {
    /** Returns one view of a record, null if it is absent. One statement outside any transaction, as the cache requires. */
    async load(model: Model, id: number, view: View): Promise<LoadedRecord | null> {
      return (await read('read_record', select(view, 'id = $2'), model, id))[0] ?? null;
    },
    /** Reads several records under the conditions of `load`. Absent records are not in the result. */
    async loadMany(model: Model, ids: number[], view: View): Promise<ReadonlyMap<number, LoadedRecord>> {
      const records = await read('read_records', selectList(view, 'id = ANY ($2)'), model, ids);
      return new Map(records.map((record) => [record.id, record]));
    },
    /** Returns at most `limit` records whose id is above `after`, in the order of their ids. */
    list: (model: Model, view: View, after: number, limit: number) =>
      read('list_records', selectList(view, 'id > $2 ORDER BY id LIMIT $3'), model, after, limit),
  };
}
