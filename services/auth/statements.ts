import type { Database } from '@content-platform/chassis';

/** Short forms of `query` for stores. All of them throw what `query` throws. */
export function statements(query: Database['query']) {
  return {
    async rows<Row extends object>(operation: string, text: string, values?: readonly unknown[]) {
      return (await query<Row>(operation, text, values)).rows;
    },
    async first<Row extends object>(operation: string, text: string, values?: readonly unknown[]) {
      return (await query<Row>(operation, text, values)).rows[0];
    },
    /** Whether the statement found or changed a row. */
    async affects(operation: string, text: string, values?: readonly unknown[]): Promise<boolean> {
      return (await query(operation, text, values)).rowCount! > 0;
    },
    async run(operation: string, text: string, values?: readonly unknown[]): Promise<void> {
      await query(operation, text, values);
    },
  };
}
