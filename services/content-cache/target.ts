import type { Model } from '@content-platform/contract';

/** The target of a clear: one record, or with id null every record of the model. */
export interface Target {
  model: Model;
  id: number | null;
}

/** Returns `<model>:<id>` or `<model>:*`. */
export function targetName({ model, id }: Target): string {
  return `${model}:${id ?? '*'}`;
}
