/**
 * Every error of the API by its status: its name in the envelope and its text in the documents. Names are added, never
 * changed.
 */
const summaries = {
  400: {
    malformed_request: 'The request is not well-formed HTTP, or has a body where none is allowed.',
    malformed_target: 'The path or query is written in a way that could be read in two ways.',
    identity_login_unknown:
      'No login at the identity service is under way with this state; each state is taken once.',
    identity_login_expired: 'The login at the identity service took more than 10 minutes; begin again.',
    malformed_json: 'The body is not JSON.',
    invalid_request: 'A parameter is missing, repeated or malformed (RFC 6749 §5.2).',
    unsupported_grant_type: 'This grant type is not offered (RFC 6749 §5.2).',
    invalid_grant:
      'The refresh token or code is not valid (RFC 6749 §5.2); details say the reason: expired, revoked, reused or unknown.',
    invalid_scope: 'The client asked for a scope it does not have (RFC 6749 §5.2).',
  },
  401: {
    invalid_credentials: 'The email or the password is wrong.',
    invalid_client: 'The client is unknown or its secret is wrong (RFC 6749 §5.2).',
    token_required: 'The request carries no access token.',
    invalid_token: 'The access token is malformed, expired or not ours (RFC 6750 §3.1).',
  },
  403: {
    insufficient_scope: 'The access token does not allow this (RFC 6750 §3.1).',
    password_change_required: 'The token came with a temporary password: set a password of your own first.',
    identity_other_browser:
      'The login at the identity service was begun in another browser, or its cookie is gone.',
    other_origin: 'A page of another origin sent this, or nothing says which page did.',
    suborg_not_allowed:
      'The identity service did not name this part of the organisation at the login of this session.',
  },
  404: {
    not_found: 'There is no such thing.',
  },
  405: {
    method_not_allowed: 'The path exists, the method does not; Allow lists those that do.',
  },
  408: {
    request_timeout: 'The request did not arrive whole in time.',
  },
  409: {
    email_taken: 'Another user has this address.',
    last_admin: 'Without this one nobody could administer users any more.',
    retry_failed: 'The job was tried again and failed again.',
    idempotency_key_in_use:
      'The first request with this Idempotency-Key is under way; come again for its reply.',
    letter_closed: 'The letter is sent or closed and does not change any more; details name its state.',
    state_change_not_allowed: 'The letter cannot go from its state to this one; details name both.',
  },
  412: {
    precondition_failed: 'The object has changed since the ETag in If-Match; read it again.',
  },
  413: {
    payload_too_large: 'The body is larger than this endpoint takes.',
  },
  415: {
    unsupported_media_type: 'The body is of a kind, or encoded in a way, this endpoint does not take.',
  },
  416: {
    range_not_satisfiable: 'The file ends before this range begins; Content-Range says how long it is.',
  },
  422: {
    animated_image: 'The picture has more than one frame.',
    image_too_large:
      'The picture has more than 24 megapixels (12 with 16 bits a colour), or a side of over 16,383 pixels.',
    image_too_costly: 'The picture takes more than 20 seconds, or too much memory.',
    unreadable_file: 'The file is damaged: it is cut off, its checksums are wrong or its header lies.',
    idempotency_key_reused: 'This Idempotency-Key came with another request in the last 24 hours.',
    webform_required: 'This webform of the letter cannot be skipped.',
    validation_failed: 'The request is well-formed but invalid; details name the fields.',
  },
  428: {
    precondition_required: 'The change needs If-Match with the ETag that it is based on.',
  },
  429: {
    rate_limited: 'Too many requests; Retry-After says when to come again.',
  },
  431: {
    headers_too_large: 'The header block is larger than 16 KB.',
  },
  500: {
    internal_error: 'Something went wrong here; the request id leads to the cause in the log.',
  },
  501: {
    identity_login_disabled: 'Logging in at an identity service is not configured.',
  },
  502: {
    identity_unavailable: 'The identity service cannot be reached, or does not answer as one.',
    bad_gateway: 'The service broke off.',
  },
  503: {
    service_unavailable: 'The service, or something it needs, is away for the moment.',
    overloaded:
      'The platform has too much to do and did nothing with this; Retry-After says when to come again.',
    cache_unavailable:
      'The cache could not be cleared now; send it again. The clear is remembered while PostgreSQL is there.',
  },
  504: {
    gateway_timeout: 'The service did not answer in time.',
  },
} as const;

type Summaries = typeof summaries;
type Status = keyof Summaries;
export type ErrorCode = { [S in Status]: keyof Summaries[S] }[Status];
export type ErrorStatus<C extends ErrorCode> = {
  [S in Status]: C extends keyof Summaries[S] ? S : never;
}[Status];

/** Every error of the API by its name. */
export const errors = Object.fromEntries(
  Object.entries(summaries).flatMap(([status, named]) =>
    Object.entries(named).map(([code, summary]) => [code, { status: Number(status), summary }]),
  ),
) as { readonly [C in ErrorCode]: { status: ErrorStatus<C>; summary: string } };
