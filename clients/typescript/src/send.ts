import { type Operation, type Operations, operations } from './contract.ts';
import { type ErrorDetail, PlatformError } from './errors.ts';
import { withLimit } from './signals.ts';

export type OperationName = keyof Operations;
export type InputOf<K extends OperationName> = Operations[K]['input'];
export type OutputOf<K extends OperationName> = Operations[K]['output'];

export interface CallOptions {
  /** The promise rejects with the signal's reason as soon as the signal fires. */
  signal?: AbortSignal | undefined;
  /** Further request headers, for example `If-Match` or an `Idempotency-Key` of your own. */
  headers?: Record<string, string> | undefined;
  /** Limit for one try in ms. Default: 30,000; for an upload and the download of a file 260,000. */
  timeoutMs?: number | undefined;
}

/** Options of one try. */
export type TryOptions = Omit<CallOptions, 'headers'> & { headers?: Headers };

/** A successful reply. `body` is undefined for 202, 204 and 304. */
export interface Reply<T> {
  status: number;
  headers: Headers;
  body: T;
}

type Input = Record<string, unknown>;
export type Fetch = (url: string, init: RequestInit & { headers: Headers }) => Promise<Response>;

interface HttpCall {
  url: string;
  init: { method: string; body?: string | FormData };
}

/** Returns a value for a path. @throws TypeError if the URL would become that of another operation */
function segmentOf(name: string, value: unknown): string {
  const text = String(value ?? '');
  if (['', '.', '..'].includes(text)) throw new TypeError(`${name} must not be '${text}'.`);
  return encodeURIComponent(text);
}

/** Returns the request of an operation. Fields that the path lacks become the query of a GET, otherwise the body. */
function requestOf(base: string, { method, path, form, body: needsBody }: Operation, input: Input): HttpCall {
  const rest = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const { [name]: value } = rest;
    delete rest[name];
    return segmentOf(name, value);
  });
  const names = Object.keys(rest);
  const url = base + filled;
  if (names.length === 0 && !needsBody) return { url, init: { method } };
  if (method === 'GET') {
    const query = new URLSearchParams(names.map((name): [string, string] => [name, String(rest[name])]));
    return { url: `${url}?${query}`, init: { method } };
  }
  if (!form) return { url, init: { method, body: JSON.stringify(rest) } };
  const body = new FormData();
  for (const name of names) body.set(name, rest[name] as Blob);
  return { url, init: { method, body } };
}

interface Envelope {
  error: string;
  message: string;
  request_id: string;
  details?: ErrorDetail[];
}

function errorOf({ status, headers }: Response, body: unknown): PlatformError {
  const { error, message, request_id, details } = (body ?? {}) as Partial<Envelope>;
  const seconds = Number(headers.get('Retry-After') ?? Number.NaN);
  const retryAfter = seconds >= 0 ? seconds : undefined;
  if (typeof error !== 'string' || typeof message !== 'string') {
    const text = `HTTP status ${status} without a reply of the platform.`;
    return new PlatformError({ code: 'unexpected_reply', status, message: text, retryAfter });
  }
  return new PlatformError({
    code: error,
    status,
    message,
    requestId: request_id,
    details: Array.isArray(details) ? details : [],
    retryAfter,
  });
}

/** Returns the body of a reply; undefined if it is not the JSON, or the file, that the operation returns. */
async function contentOf(response: Response, isFile: boolean): Promise<unknown> {
  const type = response.headers.get('Content-Type') ?? '';
  const isWanted = isFile && response.ok && !type.startsWith('text/');
  if (!type.startsWith('application/json')) return isWanted ? response.blob() : void (await response.text());
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Sends a request once.
 * @throws PlatformError, and the reason of the signal
 */
async function exchange<T>(
  fetch: Fetch,
  { url, init }: HttpCall,
  headers: Headers,
  isFile: boolean,
  signal: AbortSignal,
): Promise<Reply<T>> {
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(url, { ...init, headers, signal, credentials: 'omit', redirect: 'error' });
    body = await contentOf(response, isFile);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new PlatformError({ code: 'network_error', message: `No reply from ${url}.`, cause });
  }
  const mayBeEmpty = [202, 204, 304].includes(response.status);
  if (!mayBeEmpty && (!response.ok || body === undefined)) throw errorOf(response, body);
  return { status: response.status, headers: response.headers, body: body as T };
}

const usualLimitMs = 30_000;
/** For 10 MB over a slow line: the platform receives an upload for 180 s, and then replies within 75 s. */
const fileLimitMs = 260_000;

export type SendOnce = ReturnType<typeof createSendOnce>;

/** Returns the function that sends a request once, with an access token if there is one. */
export function createSendOnce(base: string, fetch: Fetch) {
  return <K extends OperationName>(
    name: K,
    input: InputOf<K>,
    { signal, headers, timeoutMs }: TryOptions,
    token?: string,
  ): Promise<Reply<OutputOf<K>>> => {
    const operation = operations[name];
    const request = requestOf(base, operation, input as Input);
    const all = new Headers(headers);
    if (typeof request.init.body === 'string') all.set('Content-Type', 'application/json');
    if (token !== undefined) all.set('Authorization', `Bearer ${token}`);
    const isFile = operation.blob === true;
    const limitMs = timeoutMs ?? (operation.form || isFile ? fileLimitMs : usualLimitMs);
    return withLimit(limitMs, signal, (either) => exchange<OutputOf<K>>(fetch, request, all, isFile, either));
  };
}

/** Returns a file with this name. Reads a stream to its end, so that the upload can be repeated. */
export async function fileOf(
  data: Blob | ReadableStream<Uint8Array>,
  name: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Blob> {
  const readAll = (either: AbortSignal): Promise<Blob> =>
    new Response((data as ReadableStream).pipeThrough(new TransformStream(), { signal: either })).blob();
  const blob = data instanceof Blob ? data : await withLimit(fileLimitMs, signal, readAll);
  return name === undefined ? blob : new File([blob], name, { type: blob.type });
}
