import type { ErrorCode } from './errors.ts';

/** Request header of endpoints that accept an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). */
export const idempotencyHeader = {
  'Idempotency-Key': {
    description:
      'Unique key of up to 255 printable ASCII characters. For 24 hours, a repeated request with the same key returns the first successful reply and has no further effect. Errors are not stored. A caller can store 1,000 keys in 24 hours; more return 429.',
    // HTTP strips leading and trailing spaces from header values.
    pattern: /^[!-~](?:[ -~]{0,253}[!-~])?$/,
  },
} as const;

/** Errors of endpoints that accept an Idempotency-Key. */
export const idempotencyErrors = [
  'idempotency_key_in_use',
  'idempotency_key_reused',
] as const satisfies ErrorCode[];
