import * as domains from './domains.ts';
import type { Endpoint } from './endpoint.ts';
import type { ErrorCode } from './errors.ts';
import { services } from './services.ts';

/** Distinguishes endpoints from the other exports of a domain file. */
function isEndpoint(value: unknown): value is Endpoint {
  return typeof value === 'object' && value !== null && 'responses' in value;
}

const all = Object.values<unknown>(domains).filter(isEndpoint);

/** Every endpoint of the platform, by service and then by name: JavaScript sorts the exports of `domains` by name. */
export const endpoints: readonly Endpoint[] = services.flatMap(({ name }) =>
  all.filter(({ service }) => service === name),
);

/** Returns every error code that an endpoint can return: its own errors and the errors that its definition implies. */
export function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const codes = new Set<ErrorCode>(['malformed_target', 'rate_limited', 'internal_error', 'overloaded']);
  const add = (...more: ErrorCode[]) => more.forEach((code) => codes.add(code));
  if (endpoint.access !== 'public') add('token_required', 'invalid_token', 'insufficient_scope');
  if (endpoint.access !== 'public' && !endpoint.beforePasswordChange) add('password_change_required');
  if (endpoint.body) add('payload_too_large', 'unsupported_media_type', 'request_timeout');
  add(endpoint.body ? (endpoint.invalidBody ?? 'validation_failed') : 'malformed_request');
  if (endpoint.body?.kinds.includes('json')) add('malformed_json');
  if (endpoint.service !== 'gateway') {
    add('validation_failed', 'bad_gateway', 'service_unavailable', 'gateway_timeout');
  }
  if (endpoint.access !== 'public' && !endpoint.beforeMfaEnrollment) add('mfa_enrollment_required');
  if (endpoint.recentLogin) add('reauthentication_required');
  add(...(endpoint.errors ?? []));
  return [...codes];
}
