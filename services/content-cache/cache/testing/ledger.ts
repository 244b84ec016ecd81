type Cell = ReturnType<typeof createCell>;

/** The facts of one record, in memory that threads may share. Every cell starts at 0: version 1 exists. */
export interface Ledger {
  model: string;
  id: number;
  /** the state in the database, as the versioned store encodes it */
  stored: Cell;
  /** the highest version whose commit was acknowledged */
  committed: Cell;
  /** the highest version committed when an acknowledged clear was sent: the minimum for every read that starts now */
  floor: Cell;
  /** the version of the last deletion, and the number of deletions being committed */
  deletedAt: Cell;
  deleting: Cell;
  /** unanswered clears, and all clears that were sent */
  clearing: Cell;
  clearsSent: Cell;
}

const CELLS = 7;

/** Allocates memory for the ledgers of `records` records. */
export function ledgerMemory(records: number): SharedArrayBuffer {
  return new SharedArrayBuffer(records * CELLS * Int32Array.BYTES_PER_ELEMENT);
}

/** Creates the ledgers by model; ids start at 1. */
export function createLedgers(models: string[], records: number, memory: SharedArrayBuffer): Ledger[][] {
  const numbers = new Int32Array(memory);
  let next = 0;
  const cell = () => createCell(numbers, next++);
  return models.map((model) =>
    Array.from({ length: records }, (_, index) => ({
      model,
      id: index + 1,
      stored: cell(),
      committed: cell(),
      floor: cell(),
      deletedAt: cell(),
      deleting: cell(),
      clearing: cell(),
      clearsSent: cell(),
    })),
  );
}

/** A number that threads share. */
function createCell(numbers: Int32Array, at: number) {
  /** Changes the value atomically, and returns the new value. */
  function update(change: (value: number) => number): number {
    for (;;) {
      const before = Atomics.load(numbers, at);
      const after = change(before);
      if (Atomics.compareExchange(numbers, at, before, after) === before) return after;
    }
  }
  return {
    get value(): number {
      return Atomics.load(numbers, at);
    },
    add: (by: number) => void Atomics.add(numbers, at, by),
    update,
    /** Never lowers it. */
    raise: (to: number) => void update((value) => Math.max(value, to)),
  };
}
