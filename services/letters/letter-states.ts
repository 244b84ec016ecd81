import type { LetterState } from '@content-platform/contract';

/** Where a letter may go from each state. */
const next: Record<LetterState, readonly LetterState[]> = {
  draft: ['open', 'closed'],
  open: ['draft', 'sent', 'closed'],
  // Nobody gets it back.
  sent: ['closed'],
  closed: [],
};

export function mayGo(from: LetterState, to: LetterState): boolean {
  return next[from].includes(to);
}

/** Whether what the letter says is settled: its title, and which webforms are skipped. */
export function isSettled(state: LetterState): boolean {
  return state === 'sent' || state === 'closed';
}
