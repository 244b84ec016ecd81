import type { IdentityError } from '@content-platform/contract';

/** What an error and its causes say. The causes themselves may hold tokens and claims, so they are not kept. */
function messages(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const rest = messages(error.cause);
  return rest ? `${error.message}: ${rest}` : error.message;
}

/** A login at the identity service cannot go on. `message` is for the log alone. */
export class IdentityFailure extends Error {
  readonly code: IdentityError;
  /** once it is known */
  readonly userId: number | undefined;

  constructor(code: IdentityError, reason: unknown, userId?: number) {
    super(typeof reason === 'string' ? reason : messages(reason));
    this.code = code;
    this.userId = userId;
  }
}
