import type { ErrorCode } from './contract.ts';

/** Errors without a reply from the platform: no connection, no reply in time, or a reply from another server. */
export type ClientErrorCode = 'network_error' | 'timeout' | 'unexpected_reply';

/** More about an error: the invalid field, or the name of a value. */
export interface ErrorDetail {
  path: string;
  message: string;
}

interface Fields {
  code: string;
  message: string;
  status?: number;
  requestId?: string | undefined;
  details?: readonly ErrorDetail[] | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** Every error of the client, except that of an aborted call: its promise rejects with the reason of the signal. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  /** The platform's error code, or that of the client. A newer platform may return further codes. */
  readonly code: ErrorCode | ClientErrorCode | (string & {});
  /** HTTP status; 0 without a reply. */
  readonly status: number;
  /** Identifies the request in the platform's log. */
  readonly requestId: string | undefined;
  readonly details: readonly ErrorDetail[];
  /** Seconds to wait before the next request. */
  readonly retryAfter: number | undefined;

  constructor({ code, message, status = 0, requestId, details = [], retryAfter, cause }: Fields) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.details = details;
    this.retryAfter = retryAfter;
  }

  /** Returns the message of a detail, for example `mfa_token` of `mfa_required`, or `reason` of `invalid_grant`. */
  detail(path: string): string | undefined {
    return this.details.find((one) => one.path === path)?.message;
  }
}
