import type { z } from 'zod';
import type { ErrorCode } from './errors.ts';

/** What a token may carry beyond "is valid". A person has those of their roles, a machine client its own. */
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
 * Who may call an endpoint: `public` anyone, `token` any valid token, `user` any valid token of a person,
 * or a scope that the token must carry.
 */
export type Access = 'public' | 'token' | 'user' | Scope;

export type ServiceName =
  'gateway' | 'auth' | 'content-cache' | 'media-upload' | 'devices' | 'letters' | 'pulse';
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Kinds of bodies, and how each is named on the wire. */
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
  /** A limit on guessing secrets: RATE_LIMIT_SCALE does not touch it. */
  guessing?: boolean;
}

export interface RequestBody {
  /** The first is what the documentation and the typed client use. */
  kinds: readonly [BodyKind, ...BodyKind[]];
  maxBytes: number;
  /** Of a multipart body it is for the documents alone: the service reads that one as a stream. */
  schema: z.ZodType;
  /** The request may come without one; its handler then sees undefined. */
  optional?: true;
  /** Of a multipart body: which kinds of file each field takes. For the documents: a file is what its content says. */
  files?: Readonly<Record<string, readonly string[]>>;
}

export interface RequestHeader {
  description: string;
  /** What it must look like, where that matters. */
  pattern?: RegExp;
  /** The endpoint does nothing without it. */
  required?: true;
}

export interface Response {
  description: string;
  /** Absent: no body. */
  schema?: z.ZodType;
  /** The same for a browser, whose Accept names text/html. */
  page?: true;
  /** Default: application/json. Other kinds have no schema. */
  contentType?: string | readonly string[];
  /** Headers a client may rely on, each with what it says. */
  headers?: Readonly<Record<string, string>>;
}

/** One thing a client can ask: everything the gateway, the service, the documents and the tests need of it. */
export interface Endpoint {
  /** Unique, in lower camel case: the operationId, and the name of its file in kebab case. */
  name: string;
  method: Method;
  /** Express form. Each `:name` stands for exactly one segment and has its schema in `params`. */
  path: `/${string}`;
  service: ServiceName;
  access: Access;
  /**
   * For browsers: the service gets its cookies, and may set some; nobody else's request or reply carries any. It may
   * take one of them for a token, and check tokens itself where `access` is public.
   */
  cookies?: true;
  /** Open to a token that a temporary password gave, too; the others answer it 403 `password_change_required`. */
  beforePasswordChange?: true;
  rateLimit: RateLimit;
  /** How long the service may take for its reply once it has the whole request, when that is longer than usual. */
  replyWithinSeconds?: number;
  summary: string;
  params?: z.ZodObject;
  query?: z.ZodObject;
  /** Request headers with a meaning of their own, each with what it does. */
  headers?: Readonly<Record<string, string | RequestHeader>>;
  body?: RequestBody;
  /** What validation of the body answers; default 422 `validation_failed`. RFC 6749 wants 400 `invalid_request`. */
  invalidBody?: 'invalid_request';
  responses: Readonly<Record<number, Response>>;
  /** Errors of its own. Those that follow from access, limits, body and forwarding are added by `errorsOf`. */
  errors?: readonly ErrorCode[];
}

export function defineEndpoint<const E extends Endpoint>(endpoint: E): E {
  return endpoint;
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type Sent<S> = S extends z.ZodType ? z.input<S> : undefined;

/** Path parameters as the handler sees them. */
export type Params<E extends Endpoint> = Parsed<E['params']>;
/** Query parameters as the handler sees them, defaults filled in. */
export type Query<E extends Endpoint> = Parsed<E['query']>;
/** The body as the handler sees it. */
export type Body<E extends Endpoint> = E['body'] extends RequestBody
  ? z.output<E['body']['schema']> | (E['body'] extends { optional: true } ? undefined : never)
  : undefined;
/** The body as a client writes it. */
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

/** What a handler may answer: one of the statuses of the contract with its body. Files are streams. */
export type Reply<E extends Endpoint> = {
  [S in keyof E['responses']]: ReplyOf<S, E['responses'][S]>;
}[keyof E['responses']];
