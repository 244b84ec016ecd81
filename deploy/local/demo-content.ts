import { models, type Model } from '@content-platform/contract';

/** Number of records per model. */
export const DEMO_RECORDS = 50;

export interface DemoRecord {
  model: Model;
  id: number;
  title: string;
  body: unknown;
}

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
  pathway: (id) => ({
    title: `Pathway ${id}`,
    body: {
      steps: ['read', 'answer', 'talk'].map((kind, index) => ({
        day: 7 * index,
        kind,
        webform: 1 + (id % 50),
      })),
    },
  }),
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

/** Records 1 to 50 of each model. */
export const demoRecords = (): DemoRecord[] =>
  models.flatMap((model) =>
    Array.from({ length: DEMO_RECORDS }, (_, index) => ({
      model,
      id: index + 1,
      ...bodies[model](index + 1),
    })),
  );
