import { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import type { ServiceName } from './services.ts';

/** Rights that a token may carry. A user gets the scopes of their roles; a machine client has its own scopes. */
export const scopes = [
  'cache:clear',
  'jobs:manage',
  'pulse:view',
  'users:admin',
  'letters:write',
  'devices:manage',
  'content:read',
  'content:list',
  'content:restricted',
] as const;
export type Scope = (typeof scopes)[number];

/** The scopes that a machine client may have. Only people administer users, with a recent login. */
export const machineScopes: readonly Scope[] = scopes.filter((scope) => scope !== 'users:admin');

/**
 * `public`: no token. `user`: a token of a user. `reader`: a token of a user, or of a machine client with the scope
 * content:read. Otherwise a scope that the token must carry, or several scopes of which it must carry one.
 */
export type Access = 'public' | 'user' | 'reader' | Scope | readonly [Scope, ...Scope[]];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export const mediaTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
} as const;
export type BodyKind = keyof typeof mediaTypes;

export interface RateLimit {
  requests: number;
  seconds: number;
  /** The limit protects a secret against guessing; RATE_LIMIT_SCALE does not change it. */
  guessing?: boolean;
}

export interface RequestBody {
  /** Accepted body kinds. The OpenAPI examples and the typed client use the first kind. */
  kinds: readonly [BodyKind, ...BodyKind[]];
  maxBytes: number;
  /** Schema of the body. The service streams a multipart body and does not validate it against this schema. */
  schema: z.ZodType;
  /** The body may be absent; the handler then gets undefined. */
  optional?: true;
}

export interface RequestHeader {
  description: string;
  pattern?: RegExp;
  /** For the OpenAPI document only: the handler refuses requests without this header. */
  required?: true;
}

export interface Response {
  description: string;
  /** Schema of the JSON body; if absent, the response has no JSON body. */
  schema?: z.ZodType;
  /** Returns an HTML page instead of JSON when the Accept header contains text/html. */
  page?: true;
  /** The JSON body is sent in pieces while the service reads the data. */
  isStreamed?: true;
  /** Media types of a body that is not JSON. A response without `schema` and `contentType` has no body. */
  contentType?: string | readonly string[];
  /** Guaranteed response headers and their descriptions. */
  headers?: Readonly<Record<string, string>>;
}

/** Definition of an endpoint. The gateway, the service, the OpenAPI document and the tests read it. */
export interface Endpoint {
  /** Unique operationId in lower camel case. A service's handler is the function with this name in `endpoints/`. */
  name: string;
  method: Method;
  /** Path in Express syntax. Each `:name` matches exactly one segment and has its schema in `params`. */
  path: `/${string}`;
  service: ServiceName;
  access: Access;
  /** The gateway passes cookies in both directions. With public `access` the service may accept one as a token. */
  cookies?: true;
  /** HEAD returns 405, because this GET has side effects and HEAD must be safe (RFC 9110 §9.2.1). */
  noHead?: true;
  /** Accepts tokens from a login with a temporary password. Other endpoints return 403 `password_change_required`. */
  beforePasswordChange?: true;
  /** Accepts tokens of users who must set up a second factor first. Other endpoints return 403 `mfa_enrollment_required`. */
  beforeMfaEnrollment?: true;
  /** Every call needs a login within the last 15 minutes; otherwise 403 `reauthentication_required`. */
  recentLogin?: true;
  rateLimit: RateLimit;
  /** Seconds until the reply must be complete, counted from the end of the request. Set only if longer than the default. */
  replyWithinSeconds?: number;
  /** Key in `latencyLimits`. Default: `usual`. */
  latencyClass?: 'login' | 'upload';
  /** Verb and object, at most 8 words. */
  summary: string;
  /** Details that do not fit into the summary, as Markdown. */
  description?: string;
  params?: z.ZodObject;
  query?: z.ZodObject;
  /** Request headers that the endpoint reads, and their descriptions. */
  headers?: Readonly<Record<string, string | RequestHeader>>;
  body?: RequestBody;
  /** Error for an invalid body. Default: 422 `validation_failed`; RFC 6749 requires 400 `invalid_request`. */
  invalidBody?: 'invalid_request';
  responses: Readonly<Record<number, Response>>;
  /** Errors of the endpoint itself. `errorsOf` adds the errors that access, limits, body and forwarding imply. */
  errors?: readonly ErrorCode[];
}

type Place = Pick<Endpoint, 'name' | 'method' | 'path'>;

/** Returns a function that defines endpoints with the default fields `common` and 600 requests per minute. */
export function endpointsWith<const C extends Partial<Endpoint>>(common: C) {
  const usual = { rateLimit: { requests: 600, seconds: 60 }, ...common };
  return <const E extends Partial<Endpoint> & Omit<Endpoint, keyof Place | 'rateLimit' | keyof C>>(
    name: string,
    method: Method,
    path: Endpoint['path'],
    endpoint: E,
  ) => ({ ...usual, name, method, path, ...endpoint }) as Omit<typeof usual, keyof E> & Place & E;
}

/** Returns the definition of a JSON body of at most 16 KB. */
export const jsonBodyOf = <Schema extends z.ZodType>(schema: Schema) =>
  ({ kinds: ['json'], maxBytes: 16_384, schema }) as const;
/** Returns the definition of a JSON body with these fields and no others. */
export const jsonBody = <Fields extends z.ZodRawShape>(fields: Fields) => jsonBodyOf(z.strictObject(fields));
export const optionalJsonBody = <Fields extends z.ZodRawShape>(fields: Fields) =>
  ({ ...jsonBody(fields), optional: true }) as const;

/** Request header and 304 response of endpoints that return an ETag. */
export const ifNoneMatch = {
  'If-None-Match': "ETags of the client's copies. If one is current, the response is 304.",
};
export const notModified = {
  304: { description: 'Not modified: the copy of the client is current.' },
} as const;

/** Request header of endpoints that accept an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07). */
export const idempotencyHeader = {
  'Idempotency-Key': {
    description:
      'Unique key of up to 255 printable ASCII characters. For 24 hours, a repeated request with the same key returns the first successful reply and has no further effect. Errors are not stored. A caller can store 1,000 keys in 24 hours; more return 429.',
    // HTTP strips leading and trailing spaces from header values.
    pattern: /^[!-~](?:[ -~]{0,253}[!-~])?$/,
  },
} as const;

export const idempotencyErrors = ['idempotency_key_in_use', 'idempotency_key_reused'] as const;

type Parsed<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;

export type Params<E extends Endpoint> = Parsed<E['params']>;
export type Query<E extends Endpoint> = Parsed<E['query']>;
/** The body after validation. */
export type Body<E extends Endpoint> = E['body'] extends RequestBody
  ? z.output<E['body']['schema']> | (E['body'] extends { optional: true } ? undefined : never)
  : undefined;
/** The body before validation, as the client sends it. */
export type BodyInput<E extends Endpoint> = E['body'] extends RequestBody
  ? z.input<E['body']['schema']>
  : undefined;

interface SchemaReply<S, T extends z.ZodType> {
  status: S;
  body: z.input<T>;
  headers?: Record<string, string>;
}

interface FileReply<S> {
  status: S;
  body: AsyncIterable<Uint8Array>;
  headers: Record<string, string>;
}

type ReplyOf<S extends PropertyKey, R> = S extends number
  ? R extends { schema: infer T extends z.ZodType; page: true }
    ? SchemaReply<S, T> | FileReply<S>
    : R extends { schema: infer T extends z.ZodType; isStreamed?: never }
      ? SchemaReply<S, T>
      : R extends { contentType: string | readonly string[] } | { isStreamed: true }
        ? FileReply<S>
        : { status: S; headers?: Record<string, string> }
  : never;

/** A handler's reply: a status from the contract with its body. The body of a file is a stream. */
export type Reply<E extends Endpoint> = {
  [S in keyof E['responses']]: ReplyOf<S, E['responses'][S]>;
}[keyof E['responses']];
