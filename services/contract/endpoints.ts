import * as accounts from './accounts.ts';
import * as auth from './auth.ts';
import * as cacheAdmin from './cache-admin.ts';
import * as content from './content.ts';
import * as devices from './devices.ts';
import * as failedJobs from './failed-jobs.ts';
import * as identity from './identity.ts';
import * as letters from './letters.ts';
import * as media from './media.ts';
import * as platform from './platform.ts';
import * as pulse from './pulse.ts';
import * as users from './users.ts';
import type { Endpoint } from './endpoint.ts';
import type { ErrorCode } from './errors.ts';

/** A module's exports are its endpoints, and what those are made of. */
function isEndpoint(value: unknown): value is Endpoint {
  return typeof value === 'object' && value !== null && 'responses' in value;
}

/** Every endpoint there is: what these modules export. What is not here does not exist for a client. */
export const endpoints: readonly Endpoint[] = [
  auth,
  accounts,
  users,
  identity,
  content,
  cacheAdmin,
  failedJobs,
  media,
  devices,
  letters,
  pulse,
  platform,
].flatMap((module) => Object.values(module).filter(isEndpoint));

/** All errors an endpoint can answer: its own, and those that follow from what it is. */
export function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    'malformed_target',
    'rate_limited',
    'payload_too_large',
    'internal_error',
  ]);
  const add = (...more: ErrorCode[]) => more.forEach((code) => codes.add(code));
  // Whether the platform is well is answered whatever there is to do.
  if (endpoint !== platform.health) add('overloaded');
  if (endpoint.access !== 'public') add('token_required', 'invalid_token', 'insufficient_scope');
  if (endpoint.access === 'token') codes.delete('insufficient_scope');
  if (endpoint.access !== 'public' && !endpoint.beforePasswordChange) add('password_change_required');
  if (endpoint.body) add('unsupported_media_type', endpoint.invalidBody ?? 'validation_failed');
  if (endpoint.body?.kinds.includes('json')) add('malformed_json');
  if (endpoint.service !== 'gateway') {
    add('validation_failed', 'bad_gateway', 'service_unavailable', 'gateway_timeout');
  }
  add(...(endpoint.errors ?? []));
  return [...codes];
}
