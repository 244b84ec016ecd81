/** What every file in test/bench/results and test/faults/results begins with; the rest is the section's to know. */
export interface Kept {
  date: string;
  machine: {
    cpu: string;
    cores: number;
    memoryGiB: number;
    versions: Record<string, string>;
    /** The load average of a minute before anything of this was started, where it was noted. */
    loadBefore?: number;
  };
  // oxlint-disable-next-line typescript/no-explicit-any
  [found: string]: any;
}

export interface Section {
  title: string;
  /** Below test/. */
  file: string;
  /** The command that measures it again. */
  repeat: string;
  /** Why goals were missed, and what was tried. */
  why?: string;
  tell: (kept: Kept) => Paragraphs | { text: Paragraphs; charts: Record<string, string> };
}

type Paragraphs = readonly string[];

/** The text of a section, and its charts by name. */
export function told({ tell }: Section, kept: Kept): { text: string; charts: Record<string, string> } {
  const all = tell(kept);
  const { text, charts } = 'charts' in all ? all : { text: all, charts: {} };
  return { text: text.join('\n\n'), charts };
}

/** A number for people: three digits, or whole with separators. */
export const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)));

/** A Markdown table; the first row is its head, and numbers stand to the right. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const [head, ...body] = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? round(cell) : cell)),
  );
  const align = rows[1]!.map((cell) => (typeof cell === 'number' ? '--:' : '---'));
  return [head!, align, ...body].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** What was to be reached, and whether it was. */
export const verdicts = (list: readonly { isHeld: boolean; text: string }[]): string =>
  list.map(({ isHeld, text }) => `- ${isHeld ? 'held' : '**missed**'}: ${text}`).join('\n');
