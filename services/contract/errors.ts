/** Every error code of the API by status, with its description. Codes are stable: add new ones, do not rename. */
const summaries = {
  400: {
    malformed_request: 'The request is not well-formed HTTP, or has a body where none is allowed.',
    malformed_target: 'The path or query is not in canonical form; servers could interpret it differently.',
    identity_login_unknown: 'No identity login with this state is in progress. Each state is valid once.',
    identity_login_expired: 'The identity login took more than 10 minutes. Start a new login.',
    invalid_reset_token: 'The token was used, has expired or precedes a new password. Request another mail.',
    malformed_json: 'The body is not valid JSON.',
    invalid_request: 'A parameter is missing, repeated or malformed (RFC 6749 §5.2).',
    unsupported_grant_type: 'The grant type is not supported (RFC 6749 §5.2).',
    invalid_grant: 'The refresh token or code is expired, revoked, reused or unknown: see `details`.',
    invalid_scope: 'The client requested a scope that it does not have (RFC 6749 §5.2).',
  },
  401: {
    invalid_credentials: 'The email, password, code or `mfa_token` is wrong or expired.',
    invalid_client: 'The client is unknown or its secret is wrong (RFC 6749 §5.2).',
    mfa_required: 'The user has a second factor. Send `mfa_token` of `details` to /api/login/mfa.',
    token_required: 'The request has no access token.',
    invalid_token: 'The access token is malformed, expired, revoked or from another issuer (RFC 6750 §3.1).',
  },
  403: {
    insufficient_scope: 'The access token lacks the required scope (RFC 6750 §3.1).',
    password_change_required: 'The user logged in with a temporary password. Change the password first.',
    mfa_enrollment_required:
      'A second factor is required. Set it up (/api/mfa/totp), then refresh the token.',
    reauthentication_required: 'Needs a login within 15 minutes. Log in again or call /api/reauthenticate.',
    identity_other_browser: 'Another browser started the identity login, or the login cookie is missing.',
    other_origin: 'The request comes from a page of another origin, or its origin is unknown.',
    suborg_not_allowed: 'The identity provider did not list this part of the organisation at the login.',
  },
  404: { not_found: 'The resource does not exist, or the caller has no access to it.' },
  405: { method_not_allowed: 'The path supports only the methods in the Allow header.' },
  408: { request_timeout: 'Timed out waiting for the complete request.' },
  409: {
    email_taken: 'Another user has this email address.',
    mfa_enabled: 'The user has a second factor already.',
    last_admin: 'The change would leave no enabled administrator.',
    retry_failed: 'The retry of the job failed.',
    idempotency_key_in_use: 'The first request with this Idempotency-Key is in progress. Retry later.',
    letter_closed: 'The letter is sent or closed and can no longer change. `details` has its state.',
    state_change_not_allowed: 'The letter cannot change to the requested state. `details` has both states.',
  },
  410: { cursor_expired: 'The changes since this cursor are unknown. Start again without `after`.' },
  412: { precondition_failed: 'The object has changed since the version in If-Match. Read it again.' },
  413: {
    quota_exceeded: 'The user stores as much as allowed. Delete something first.',
    payload_too_large: 'The body is larger than the limit of this endpoint.',
  },
  415: { unsupported_media_type: 'The endpoint does not accept this media type or encoding.' },
  416: { range_not_satisfiable: 'The range starts after the end of the file. Content-Range has its length.' },
  422: {
    animated_image: 'The image has more than one frame.',
    image_too_large: 'Over 24 megapixels (12 at 16 bits per channel) or a side over 16,383 pixels.',
    image_too_costly: 'Processing the image takes more than 20 seconds or too much memory.',
    unreadable_file: 'The file is damaged: truncated, wrong checksums or an inconsistent header.',
    idempotency_key_reused: 'A different request used this Idempotency-Key in the last 24 hours.',
    invalid_code: 'The code of the second factor is wrong, expired or was used before.',
    webform_required: 'The letter requires this webform, so it cannot be skipped.',
    validation_failed: 'The request is well-formed but invalid. `details` lists the fields.',
  },
  428: { precondition_required: 'The request needs If-Match with the ETag of the version to change.' },
  429: { rate_limited: 'Too many requests. Wait for the number of seconds in Retry-After.' },
  431: { headers_too_large: 'The request headers are larger than 16 KB.' },
  500: { internal_error: 'The server failed. The log has the cause under the request ID.' },
  501: {
    identity_login_disabled: 'Identity login is not configured.',
    mail_disabled: 'Sending mail is not configured.',
  },
  502: {
    identity_unavailable: 'The identity provider is unreachable or its response is invalid.',
    bad_gateway: 'The service closed the connection before the reply was complete.',
  },
  503: {
    service_unavailable: 'The service, or a dependency of it, is unavailable.',
    overloaded: 'The platform did not process the request. Wait for the number of seconds in Retry-After.',
    cache_unavailable:
      'The cache could not be cleared. Retry. If possible, the clear is stored and runs later.',
  },
  504: { gateway_timeout: 'Timed out waiting for the service.' },
} as const;

type Summaries = typeof summaries;
type Status = keyof Summaries;
export type ErrorCode = { [S in Status]: keyof Summaries[S] }[Status];
export type ErrorStatus<C extends ErrorCode> = {
  [S in Status]: C extends keyof Summaries[S] ? S : never;
}[Status];

export const errors = Object.fromEntries(
  Object.entries(summaries).flatMap(([status, named]) =>
    Object.entries(named).map(([code, summary]) => [code, { status: Number(status), summary }]),
  ),
) as { readonly [C in ErrorCode]: { status: ErrorStatus<C>; summary: string } };
