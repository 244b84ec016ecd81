/** A number that threads share. */
export interface Cell {
  readonly value: number;
  add(by: number): void;
  /** As if nobody else could come in between. Answers the new value. */
  update(change: (value: number) => number): number;
  /** Never lowers it. */
  raise(to: number): void;
}

/** What is known of one record, in memory that threads may share. All begin with 0: version 1 exists, nothing was done. */
export interface Ledger {
  model: string;
  id: number;
  /** what the database holds, as the versioned store writes it */
  stored: Cell;
  /** the highest version whose commit was answered */
  committed: Cell;
  /** the highest version that was committed when an acknowledged clear was sent: no read that starts now may be below */
  floor: Cell;
  /** the version of the last deletion, and deletions whose commit is under way */
  deletedAt: Cell;
  deleting: Cell;
  /** clears that are sent and not answered, and clears that were ever sent */
  clearing: Cell;
  clearsSent: Cell;
}

const CELLS = 7;

/** Memory for the ledgers of so many records. */
export function ledgerMemory(records: number): SharedArrayBuffer {
  return new SharedArrayBuffer(records * CELLS * Int32Array.BYTES_PER_ELEMENT);
}

/** One for each record, by model: ids count from 1. */
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

function createCell(numbers: Int32Array, at: number): Cell {
  function update(change: (value: number) => number): number {
    for (;;) {
      const before = Atomics.load(numbers, at);
      const after = change(before);
      if (Atomics.compareExchange(numbers, at, before, after) === before) return after;
    }
  }
  return {
    get value() {
      return Atomics.load(numbers, at);
    },
    add: (by) => void Atomics.add(numbers, at, by),
    update,
    raise: (to) => void update((value) => Math.max(value, to)),
  };
}
