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
  /** Why goals were missed and what was tried. */
  why?: string;
  render: (kept: StoredResult) => Paragraphs | { text: Paragraphs; charts: Record<string, string> };
}

type Paragraphs = readonly string[];

/** The text of a section, and its charts by name. */
export function renderSection(
  { render: tell }: Section,
  kept: StoredResult,
): { text: string; charts: Record<string, string> } {
  const all = tell(kept);
  const { text, charts } = 'charts' in all ? all : { text: all, charts: {} };
  return { text: text.join('\n\n'), charts };
}

/** Whether a goal was reached. */
export interface Verdict {
  isHeld: boolean;
  /** One line for a reader. */
  text: string;
}

/** Lists the goals and whether they were reached. */
export const verdicts = (list: readonly Verdict[]): string =>
  list.map(({ isHeld, text }) => `- ${isHeld ? 'pass' : '**fail**'}: ${text}`).join('\n');
