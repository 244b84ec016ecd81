import { errors } from '@content-platform/contract/errors';
import type { ErrorCode, ErrorEnvelope, ErrorStatus } from '@content-platform/contract';

interface ErrorOptions {
  details?: ErrorEnvelope['details'];
  headers?: Record<string, string>;
  /** Cause for the log; never sent to clients. */
  cause?: unknown;
}

/** An error with a reply; the status follows from the code. toHttpError() converts every other thrown value. */
export class HttpError<C extends ErrorCode = ErrorCode> extends Error {
  readonly status: ErrorStatus<C>;
  readonly error: C;
  readonly details: ErrorEnvelope['details'];
  readonly headers: Record<string, string>;

  constructor(error: C, message: string, { details, headers = {}, cause }: ErrorOptions = {}) {
    super(message, { cause });
    this.status = errors[error].status;
    this.error = error;
    this.details = details;
    // A 401 names the scheme (RFC 9110 §15.5.2) and, if a token was refused, the error code (RFC 6750 §3.1).
    const challenge = error === 'invalid_token' ? 'Bearer error="invalid_token"' : 'Bearer';
    this.headers = this.status === 401 ? { 'WWW-Authenticate': challenge, ...headers } : headers;
  }
}

/** Returns a 503 with Retry-After, for a dependency that is unavailable. */
export function unavailable(message: string, cause?: unknown): HttpError<'service_unavailable'> {
  return new HttpError('service_unavailable', message, { headers: { 'Retry-After': '1' }, cause });
}

export function methodNotAllowed(method: string, allowed: Iterable<string>) {
  const message = `The path does not support ${method}. Use a method in the Allow header.`;
  return new HttpError('method_not_allowed', message, { headers: { Allow: [...allowed].join(', ') } });
}

/** Returns the 422 (or the `error`) for invalid fields of a request, for example `body.title`. */
export function invalidFields(
  details: NonNullable<ErrorOptions['details']>,
  error: 'validation_failed' | 'invalid_request' = 'validation_failed',
): HttpError<typeof error> {
  return new HttpError(error, 'The request is not valid.', { details });
}

/** Replies for the errors of express and body-parser, by their `type` or, without a type, by their status. */
const known: Record<string, [ErrorCode, string]> = {
  'entity.parse.failed': ['malformed_json', 'The body is not valid JSON.'],
  'entity.too.large': ['payload_too_large', 'The body is too large.'],
  'encoding.unsupported': ['unsupported_media_type', 'The body must not be compressed or encoded.'],
  'charset.unsupported': ['unsupported_media_type', 'The body must be UTF-8.'],
  'parameters.too.many': ['payload_too_large', 'The form has too many fields.'],
  '400': ['malformed_request', 'The request is malformed.'],
};

/** Converts any thrown value to an HttpError: unless `known`, to a masked 500 with the original as its cause. */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  const { type, status } = (thrown ?? {}) as { type?: string; status?: number };
  const reply = known[type ?? ''] ?? known[String(status)];
  if (reply) return new HttpError(...reply);
  const message = 'The server failed. The log has the cause under the request ID.';
  return new HttpError('internal_error', message, { cause: thrown });
}

export function envelope(error: HttpError, requestId: string): ErrorEnvelope {
  return {
    error: error.error,
    code: error.status,
    message: error.message,
    request_id: requestId,
    ...(error.details ? { details: error.details } : {}),
  };
}
