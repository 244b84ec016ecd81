import type { z } from 'zod';
import type { ErrorCode } from './errors.ts';
import type { ServiceName } from './services.ts';

/** Rights that a token may carry. A person has the scopes of their roles, a machine client its own. */
export const scopes = [
  'cache:clear',
  'jobs:manage',
  'pulse:view',
  'users:admin',
  'letters:write',
  'devices:manage',
] as const;
export type Scope = (typeof scopes)[number];

/**
 * Permission to call an endpoint: `public` everyone, `token` any valid token, `user` any valid token of a person,
 * or a scope that the token must carry.
 */
export type Access = 'public' | 'token' | 'user' | Scope;

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Kinds of bodies and their media types. */
export const mediaTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
} as const;
export type BodyKind = keyof typeof mediaTypes;

export interface RateLimit {
  requests: number;
  /** Length of the window in seconds. */
  seconds: number;
  /** Limits guesses of secrets, so that RATE_LIMIT_SCALE does not change it. */
  guessing?: boolean;
}

export interface RequestBody {
  /** The documentation and the typed client use the first kind. */
  kinds: readonly [BodyKind, ...BodyKind[]];
  maxBytes: number;
  /** For a multipart body only the documents use it, because the service reads the body as a stream. */
  schema: z.ZodType;
  /** The request may have no body; its handler then gets undefined. */
  optional?: true;
  /** Media types that each field of a multipart body accepts. For the documents only: the type is detected from the bytes. */
  files?: Readonly<Record<string, readonly string[]>>;
}

export interface RequestHeader {
  description: string;
  /** The required form of the value. */
  pattern?: RegExp;
  /** Requests without the header are refused. */
  required?: true;
}

export interface Response {
  description: string;
  /** Absent: no body. */
  schema?: z.ZodType;
  /** Browsers, whose Accept names text/html, get a page instead. */
  page?: true;
  /** Default: application/json. Other kinds have no schema. */
  contentType?: string | readonly string[];
  /** Headers that a client may rely on, with their descriptions. */
  headers?: Readonly<Record<string, string>>;
}

/** The description of an endpoint for the gateway, the service, the documents and the tests. */
export interface Endpoint {
  /** Unique, in lower camel case: the operationId, and the name of its file in kebab case. */
  name: string;
  method: Method;
  /** Express form. Each `:name` stands for exactly one segment and has its schema in `params`. */
  path: `/${string}`;
  service: ServiceName;
  access: Access;
  /**
   * For browsers: the gateway passes cookies in both directions, which it removes for every other endpoint. If `access` is
   * public, the service may accept a cookie in place of a token.
   */
  cookies?: true;
  /** HEAD is a 405, because GET changes something, which HEAD must not (RFC 9110 §9.2.1). */
  noHead?: true;
  /** Accepts tokens of a temporary password, for which other endpoints are a 403 `password_change_required`. */
  beforePasswordChange?: true;
  rateLimit: RateLimit;
  /** Time limit for the reply after the complete request, if it is longer than the default. */
  replyWithinSeconds?: number;
  /** Its limit in `latencyLimits`, if it is not the usual one. */
  latencyClass?: 'login' | 'upload';
  summary: string;
  params?: z.ZodObject;
  query?: z.ZodObject;
  /** Request headers that the endpoint uses, with their descriptions. */
  headers?: Readonly<Record<string, string | RequestHeader>>;
  body?: RequestBody;
  /** Error for an invalid body; default 422 `validation_failed`. RFC 6749 requires 400 `invalid_request`. */
  invalidBody?: 'invalid_request';
  responses: Readonly<Record<number, Response>>;
  /** Errors of the endpoint itself. `errorsOf` adds those that follow from access, limits, body and forwarding. */
  errors?: readonly ErrorCode[];
}

export function defineEndpoint<const E extends Endpoint>(endpoint: E): E {
  return endpoint;
}

type Place = Pick<Endpoint, 'name' | 'method' | 'path'>;

/**
 * Returns a function that describes endpoints with the fields `common`, unless an endpoint says otherwise. Without another
 * `rateLimit` clients may call each of them 600 times a minute.
 */
export function endpointsWith<const C extends Partial<Endpoint>>(common: C) {
  const usual = { rateLimit: { requests: 600, seconds: 60 }, ...common };
  return <const E extends Partial<Endpoint> & Omit<Endpoint, keyof Place | 'rateLimit' | keyof C>>(
    name: string,
    method: Method,
    path: Endpoint['path'],
    endpoint: E,
  ) => ({ ...usual, name, method, path, ...endpoint }) as Omit<typeof usual, keyof E> & Place & E;
}

/** A JSON body of the usual size, at most 16 KB. */
export function jsonBody<Schema extends z.ZodType>(schema: Schema) {
  return { kinds: ['json'], maxBytes: 16_384, schema } as const;
}

/** A JSON body that the request may leave out. */
export function optionalJsonBody<Schema extends z.ZodType>(schema: Schema) {
  return { ...jsonBody(schema), optional: true } as const;
}

/** The request header and the reply of endpoints that have an ETag. */
export const ifNoneMatch = {
  'If-None-Match': 'ETags the client has: 304 when one of them is current.',
} as const;
export const notModified = { 304: { description: 'The client has the current one.' } } as const;

type Parsed<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type Sent<S> = S extends z.ZodType ? z.input<S> : undefined;

/** Path parameters after validation. */
export type Params<E extends Endpoint> = Parsed<E['params']>;
/** Query parameters after validation, with defaults. */
export type Query<E extends Endpoint> = Parsed<E['query']>;
/** The body after validation. */
export type Body<E extends Endpoint> = E['body'] extends RequestBody
  ? z.output<E['body']['schema']> | (E['body'] extends { optional: true } ? undefined : never)
  : undefined;
/** The body as a client sends it. */
export type BodyInput<E extends Endpoint> = E['body'] extends RequestBody
  ? Sent<E['body']['schema']>
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
    : R extends { schema: infer T extends z.ZodType }
      ? SchemaReply<S, T>
      : R extends { contentType: string | readonly string[] }
        ? FileReply<S>
        : { status: S; headers?: Record<string, string> }
  : never;

/** A reply of a handler: a status of the contract with its body. Files are streams. */
export type Reply<E extends Endpoint> = {
  [S in keyof E['responses']]: ReplyOf<S, E['responses'][S]>;
}[keyof E['responses']];
