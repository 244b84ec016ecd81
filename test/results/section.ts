/** The common fields of the files in test/bench/results and test/faults/results. Each section knows the others. */
export interface StoredResult {
  date: string;
  machine: {
    cpu: string;
    cores: number;
    memoryGiB: number;
    versions: Record<string, string>;
    /** Load average of the minute before the run, if it was recorded. */
    loadBefore?: number;
  };
  // oxlint-disable-next-line typescript/no-explicit-any
  [found: string]: any;
}

export interface Section {
  title: string;
  /** Below test/. */
  file: string;
  /** The command that repeats the measurement. */
  repeat: string;
  /** The reasons for the figures, and trials. */
  notes?: readonly string[];
  render: (kept: StoredResult) => readonly string[];
}

export interface Verdict {
  isHeld: boolean;
  text: string;
}

export const verdicts = (list: readonly Verdict[]): string =>
  list.map(({ isHeld, text }) => `- ${isHeld ? 'pass' : '**fail**'}: ${text}`).join('\n');
