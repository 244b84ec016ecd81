import type { ErrorCode } from './errors.ts';

/** Header of endpoints that accept an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). */
export const idempotencyHeader = {
  'Idempotency-Key': {
    description:
      'Up to 255 printable characters of your choice. The same key with the same request has the same reply for 24 hours and is carried out once.',
    // A header's value has no surrounding spaces.
    pattern: /^[!-~](?:[ -~]{0,253}[!-~])?$/,
  },
} as const;

/** Errors of such endpoints. */
export const idempotencyErrors = [
  'idempotency_key_in_use',
  'idempotency_key_reused',
] as const satisfies ErrorCode[];
