import type { LetterState } from '@content-platform/contract';

interface DemoLetter {
  id: number;
  title: string;
  state: LetterState;
  webforms: { webform_id: number; required: boolean }[];
}

/** Email of the user who owns the demo letters. */
export const DEMO_LETTERS_OF = 'user@example.com';

const optional = (webform_id: number) => ({ webform_id, required: false });
const required = (webform_id: number) => ({ webform_id, required: true });

/** Letters 1 to 5: one in each state, and a second open one. */
export const DEMO_LETTERS: readonly DemoLetter[] = [
  {
    id: 1,
    title: 'Before your first visit',
    state: 'open',
    webforms: [required(1), optional(2), optional(3)],
  },
  { id: 2, title: 'After three months', state: 'draft', webforms: [required(4), optional(5)] },
  { id: 3, title: 'How are you today?', state: 'sent', webforms: [required(6), optional(7)] },
  { id: 4, title: 'Your last visit', state: 'closed', webforms: [required(8), optional(9)] },
  { id: 5, title: 'What you take', state: 'open', webforms: [optional(10), optional(11)] },
];
