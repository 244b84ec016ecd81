import type { ErrorCode } from './errors.ts';

/** What an endpoint that takes an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07) adds to its headers. */
export const idempotencyHeader = {
  'Idempotency-Key': {
    description:
      'Up to 255 printable characters of your choice. The same key with the same request has the same reply for 24 hours and is carried out once.',
    // Spaces around it are no part of a header.
    pattern: /^[!-~](?:[ -~]{0,253}[!-~])?$/,
  },
} as const;

/** What it can answer because of that. */
export const idempotencyErrors = [
  'idempotency_key_in_use',
  'idempotency_key_reused',
] as const satisfies ErrorCode[];
