import type { IdentityError } from '@content-platform/contract';

/** Joins the messages of an error and its causes. The causes may contain tokens and claims, so they are not kept. */
function messages(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const rest = messages(error.cause);
  return rest ? `${error.message}: ${rest}` : error.message;
}

/** A login at the identity provider failed. `message` is for the log only, without emails that the provider quotes. */
export class IdentityFailure extends Error {
  readonly code: IdentityError;
  /** Set once the user is known. */
  readonly userId: number | undefined;

  constructor(code: IdentityError, reason: unknown, userId?: number) {
    const text = typeof reason === 'string' ? reason : messages(reason);
    super(text.replace(/[^\s"'@]{1,64}@[^\s"']+/g, '[email]'));
    this.code = code;
    this.userId = userId;
  }
}
