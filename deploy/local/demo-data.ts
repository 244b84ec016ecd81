import { models, type Model } from '@content-platform/contract';

/** Accounts of a stack with demo data. Their emails and secrets are public, so use such a stack only for trials. */
export const DEMO_PASSWORD = 'demo-password';
/** The regular user, who owns the demo letters. The smoke test and the tour log in as this user. */
export const DEMO_USER_EMAIL = 'user@example.com';
export const DEMO_USERS = [
  { email: 'admin@example.com', name: 'Ada Admin', roles: ['admin'] },
  { email: 'sre@example.com', name: 'Sam Rivers', roles: ['sre'] },
  { email: DEMO_USER_EMAIL, name: 'Uma User', roles: ['user'] },
] as const;
export const DEMO_CLIENT = {
  name: 'content-server',
  secret: 'demo-secret',
  scopes: ['cache:clear'],
} as const;

/** Number of records per model. */
export const DEMO_RECORDS = 50;

const bodies: Record<Model, (id: number) => { title: string; body: unknown }> = {
  webform: (id) => ({
    title: `Intake form ${id}`,
    body: {
      fields: [
        { name: 'email', type: 'email', required: true },
        { name: 'mobility', type: 'choice', options: ['none', 'some', 'full'], required: true },
        { name: 'remarks', type: 'text', required: false },
      ],
      submit_label: 'Send',
    },
  }),
  pathway: (id) => {
    const steps = ['read', 'answer', 'talk'].map((kind, n) => ({ day: 7 * n, kind, webform: 1 + (id % 50) }));
    return { title: `Pathway ${id}`, body: { steps } };
  },
  accesscode: (id) => ({
    title: `Access code ${id}`,
    body: { code: `DEMO-${String(id).padStart(4, '0')}`, valid_days: 90, pathway: id },
  }),
  condition: (id) => ({
    title: `Condition ${id}`,
    body: {
      summary: `What to know about condition ${id}.`,
      advice: ['Keep moving.', 'Sleep well.', 'Ask your doctor.'],
    },
  }),
};

export const demoRecords = () =>
  models.flatMap((model) =>
    Array.from({ length: DEMO_RECORDS }, (_, n) => ({ model, id: n + 1, ...bodies[model](n + 1) })),
  );

const optional = (webform_id: number) => ({ webform_id, required: false });
const required = (webform_id: number) => ({ webform_id, required: true });

/** Letters 1 to 5: one in each state, and a second open one. */
export const DEMO_LETTERS = [
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
] as const;
