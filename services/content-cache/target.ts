import type { Model } from '@content-platform/contract';

/** What is cleared: one record, or, with id null, every record of the model. */
export interface Target {
  model: Model;
  id: number | null;
}

/** `<model>:<id>` or `<model>:*`: for logs, and as a key. */
export function targetName({ model, id }: Target): string {
  return `${model}:${id ?? '*'}`;
}
