/**
 * Every error of the API: its name in the envelope, its status and its text in the documentation. Names are added, never
 * changed.
 */
export const errors = {
  malformed_request: {
    status: 400,
    summary: 'The request is not well-formed HTTP, or has a body where none is allowed.',
  },
  malformed_target: {
    status: 400,
    summary: 'The path or query is written in a way that could be read in two ways.',
  },
  identity_login_unknown: {
    status: 400,
    summary: 'No login at the identity service is under way with this state; each state is taken once.',
  },
  identity_login_expired: {
    status: 400,
    summary: 'The login at the identity service took more than 10 minutes; begin again.',
  },
  malformed_json: { status: 400, summary: 'The body is not JSON.' },
  invalid_request: { status: 400, summary: 'A parameter is missing, repeated or malformed (RFC 6749 §5.2).' },
  unsupported_grant_type: { status: 400, summary: 'This grant type is not offered (RFC 6749 §5.2).' },
  invalid_grant: {
    status: 400,
    summary:
      'The refresh token or code is not valid (RFC 6749 §5.2); details say the reason: expired, revoked, reused or unknown.',
  },
  invalid_scope: { status: 400, summary: 'The client asked for a scope it does not have (RFC 6749 §5.2).' },
  invalid_credentials: { status: 401, summary: 'The email or the password is wrong.' },
  invalid_client: { status: 401, summary: 'The client is unknown or its secret is wrong (RFC 6749 §5.2).' },
  token_required: { status: 401, summary: 'The request carries no access token.' },
  invalid_token: {
    status: 401,
    summary: 'The access token is malformed, expired or not ours (RFC 6750 §3.1).',
  },
  insufficient_scope: { status: 403, summary: 'The access token does not allow this (RFC 6750 §3.1).' },
  password_change_required: {
    status: 403,
    summary: 'The token came with a temporary password: set a password of your own first.',
  },
  identity_other_browser: {
    status: 403,
    summary: 'The login at the identity service was begun in another browser, or its cookie is gone.',
  },
  other_origin: {
    status: 403,
    summary: 'A page of another origin sent this, or nothing says which page did.',
  },
  suborg_not_allowed: {
    status: 403,
    summary: 'The identity service did not name this part of the organisation at the login of this session.',
  },
  not_found: { status: 404, summary: 'There is no such thing.' },
  method_not_allowed: {
    status: 405,
    summary: 'The path exists, the method does not; Allow lists those that do.',
  },
  email_taken: { status: 409, summary: 'Another user has this address.' },
  last_admin: { status: 409, summary: 'Without this one nobody could administer users any more.' },
  retry_failed: { status: 409, summary: 'The job was tried again and failed again.' },
  idempotency_key_in_use: {
    status: 409,
    summary: 'The first request with this Idempotency-Key is under way; come again for its reply.',
  },
  letter_closed: {
    status: 409,
    summary: 'The letter is sent or closed and does not change any more; details name its state.',
  },
  state_change_not_allowed: {
    status: 409,
    summary: 'The letter cannot go from its state to this one; details name both.',
  },
  precondition_failed: {
    status: 412,
    summary: 'The object has changed since the ETag in If-Match; read it again.',
  },
  payload_too_large: { status: 413, summary: 'The body is larger than this endpoint takes.' },
  unsupported_media_type: {
    status: 415,
    summary: 'The body is of a kind, or encoded in a way, this endpoint does not take.',
  },
  range_not_satisfiable: {
    status: 416,
    summary: 'The file ends before this range begins; Content-Range says how long it is.',
  },
  animated_image: { status: 422, summary: 'The picture has more than one frame.' },
  image_too_large: {
    status: 422,
    summary:
      'The picture has more than 24 megapixels (12 with 16 bits a colour), or a side of over 16,383 pixels.',
  },
  image_too_costly: { status: 422, summary: 'The picture takes more than 20 seconds, or too much memory.' },
  unreadable_file: {
    status: 422,
    summary: 'The file is damaged: it is cut off, its checksums are wrong or its header lies.',
  },
  idempotency_key_reused: {
    status: 422,
    summary: 'This Idempotency-Key came with another request in the last 24 hours.',
  },
  webform_required: { status: 422, summary: 'This webform of the letter cannot be skipped.' },
  validation_failed: {
    status: 422,
    summary: 'The request is well-formed but invalid; details name the fields.',
  },
  precondition_required: {
    status: 428,
    summary: 'The change needs If-Match with the ETag that it is based on.',
  },
  rate_limited: { status: 429, summary: 'Too many requests; Retry-After says when to come again.' },
  headers_too_large: { status: 431, summary: 'The header block is larger than 16 KB.' },
  request_timeout: { status: 408, summary: 'The request did not arrive whole in time.' },
  internal_error: {
    status: 500,
    summary: 'Something went wrong here; the request id leads to the cause in the log.',
  },
  identity_login_disabled: { status: 501, summary: 'Logging in at an identity service is not configured.' },
  identity_unavailable: {
    status: 502,
    summary: 'The identity service cannot be reached, or does not answer as one.',
  },
  bad_gateway: { status: 502, summary: 'The service broke off.' },
  service_unavailable: {
    status: 503,
    summary: 'The service, or something it needs, is away for the moment.',
  },
  overloaded: {
    status: 503,
    summary:
      'The platform has too much to do and did nothing with this; Retry-After says when to come again.',
  },
  cache_unavailable: {
    status: 503,
    summary:
      'The cache could not be cleared now; send it again. The clear is remembered while PostgreSQL is there.',
  },
  gateway_timeout: { status: 504, summary: 'The service did not answer in time.' },
} as const;

export type ErrorCode = keyof typeof errors;
export type ErrorStatus<C extends ErrorCode> = (typeof errors)[C]['status'];
