import type { LetterState } from '@content-platform/contract';

/** The states that may follow each state. */
const next: Record<LetterState, readonly LetterState[]> = {
  draft: ['open', 'closed'],
  open: ['draft', 'sent', 'closed'],
  sent: ['closed'],
  closed: [],
};

export function mayGo(from: LetterState, to: LetterState): boolean {
  return next[from].includes(to);
}

/** Whether the letter's title and skipped webforms can no longer change. */
export function isSettled(state: LetterState): boolean {
  return state === 'sent' || state === 'closed';
}
