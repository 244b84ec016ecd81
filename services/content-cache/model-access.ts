import { requireScope, type Caller } from '@content-platform/chassis';
import { models, type Model, type Scope } from '@content-platform/contract';

export interface ModelAccessOptions {
  /** Models whose reads need the scope content:restricted. */
  restricted: readonly Model[];
  /** Models whose lists need the scope content:list. */
  unlisted: readonly Model[];
}

export type ModelAccess = ReturnType<typeof createModelAccess>;

/** Decides which models a caller may read and list. */
export function createModelAccess({ restricted, unlisted }: ModelAccessOptions) {
  const forReading = (model: Model): Scope[] => (restricted.includes(model) ? ['content:restricted'] : []);
  const forListing = (model: Model): Scope[] =>
    unlisted.includes(model) ? ['content:list', ...forReading(model)] : forReading(model);

  return {
    /** Throws 403 if the caller may not read records of the model. */
    requireRead: (caller: Caller, model: Model) =>
      forReading(model).forEach((scope) => requireScope(caller, scope)),
    /** Throws 403 if the caller may not list the model. */
    requireList: (caller: Caller, model: Model) =>
      forListing(model).forEach((scope) => requireScope(caller, scope)),
    /** Returns the models that the caller may list. */
    listable: ({ scopes }: Caller): Model[] =>
      models.filter((model) => forListing(model).every((scope) => scopes.has(scope))),
  };
}
