/** What is held of a goal. */
export interface Verdict {
  isHeld: boolean;
  /** One line for a person. */
  text: string;
}

/** Prints them; the process will exit with 1 when a goal was missed. */
export function conclude(verdicts: readonly Verdict[]): void {
  for (const { isHeld, text } of verdicts) console.log(`${isHeld ? '✓' : '✗'} ${text}`);
  if (verdicts.some(({ isHeld }) => !isHeld)) process.exitCode = 1;
}
