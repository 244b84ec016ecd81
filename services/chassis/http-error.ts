import type { ErrorCode, ErrorEnvelope, ErrorStatus } from '@content-platform/contract';

export interface ErrorOptions {
  headers?: Record<string, string>;
  cause?: unknown;
}

/** The one error that carries a reply. Everything else that is thrown becomes `500 internal_error`. */
export class HttpError<C extends ErrorCode = ErrorCode> extends Error {
  readonly status: ErrorStatus<C>;
  readonly error: C;
  readonly details: ErrorEnvelope['details'];
  readonly headers: Record<string, string>;

  constructor(
    status: ErrorStatus<C>,
    error: C,
    message: string,
    details?: ErrorEnvelope['details'],
    { headers = {}, cause }: ErrorOptions = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.error = error;
    this.details = details;
    // A 401 always says what to send (RFC 9110 §15.5.2).
    this.headers = status === 401 ? { 'WWW-Authenticate': 'Bearer', ...headers } : headers;
  }
}

/** A dependency is away for the moment: 503 with Retry-After in seconds. */
export function unavailable(message: string, cause?: unknown): HttpError<'service_unavailable'> {
  return new HttpError(503, 'service_unavailable', message, undefined, {
    headers: { 'Retry-After': '1' },
    cause,
  });
}

/** Errors that express and body-parser throw, by their `type` or, without one, their status. */
const known: Record<string, () => HttpError> = {
  'entity.parse.failed': () => new HttpError(400, 'malformed_json', 'The body is not valid JSON.'),
  'entity.too.large': () => new HttpError(413, 'payload_too_large', 'The body is too large.'),
  'encoding.unsupported': () =>
    new HttpError(415, 'unsupported_media_type', 'The body must not be compressed or encoded.'),
  'charset.unsupported': () => new HttpError(415, 'unsupported_media_type', 'The body must be UTF-8.'),
  'parameters.too.many': () => new HttpError(413, 'payload_too_large', 'The form has too many fields.'),
  '400': () => new HttpError(400, 'malformed_request', 'The request is malformed.'),
};

/** Turns anything thrown into an HttpError; the original stays as its cause, for the log. */
export function toHttpError(thrown: unknown): HttpError {
  if (thrown instanceof HttpError) return thrown;
  const { type, status } = (thrown ?? {}) as { type?: string; status?: number };
  const make = known[type ?? ''] ?? known[String(status)];
  if (make) return make();
  return new HttpError(500, 'internal_error', 'Something went wrong here.', undefined, { cause: thrown });
}

/** The error as it goes over the wire. */
export function envelope(error: HttpError, requestId: string): ErrorEnvelope {
  return {
    error: error.error,
    code: error.status,
    message: error.message,
    request_id: requestId,
    ...(error.details ? { details: error.details } : {}),
  };
}
