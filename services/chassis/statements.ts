import type { Database } from './postgres.ts';

/** Creates short forms of `query` for stores. All of them throw the errors of `query`. */
export function statements(query: Database['query']) {
  return {
    async rows<Row extends object>(operation: string, text: string, values?: readonly unknown[]) {
      return (await query<Row>(operation, text, values)).rows;
    },
    async first<Row extends object>(operation: string, text: string, values?: readonly unknown[]) {
      return (await query<Row>(operation, text, values)).rows[0];
    },
    /** Returns whether the statement found or changed a row. */
    async affects(operation: string, text: string, values?: readonly unknown[]): Promise<boolean> {
      return (await query(operation, text, values)).rowCount! > 0;
    },
    async run(operation: string, text: string, values?: readonly unknown[]): Promise<void> {
      await query(operation, text, values);
    },
  };
}
