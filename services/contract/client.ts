import type { z } from 'zod';
import type { BodyInput, BodyKind, Endpoint } from './endpoint.ts';
import { errorsOf } from './endpoints.ts';
import { errors } from './errors.ts';
import { errorEnvelope, type ErrorEnvelope } from './schemas.ts';

type ParamsInput<E extends Endpoint> = E['params'] extends z.ZodObject
  ? Record<keyof E['params']['shape'], string | number>
  : undefined;

export interface CallOptions<E extends Endpoint> {
  params?: ParamsInput<E>;
  query?: Record<string, string | number>;
  body?: BodyInput<E>;
  token?: string | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

type Success<E extends Endpoint> = {
  [S in keyof E['responses']]: S extends number
    ? {
        status: S;
        headers: Headers;
        body: E['responses'][S] extends { schema: infer T extends z.ZodType } ? z.output<T> : undefined;
      }
    : never;
}[keyof E['responses']];

export type Answer<E extends Endpoint> =
  | (Success<E> & { error?: undefined })
  | { status: number; headers: Headers; body: undefined; error: ErrorEnvelope };

export class ContractViolation extends Error {}

function target(endpoint: Endpoint, options: CallOptions<Endpoint>): string {
  const params = options.params as Record<string, string | number> | undefined;
  const path = endpoint.path.replace(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(params?.[name])),
  );
  const query = new URLSearchParams(options.query as Record<string, string> | undefined).toString();
  return query ? `${path}?${query}` : path;
}

function formData(fields: Record<string, Blob>): FormData {
  const form = new FormData();
  for (const [name, file] of Object.entries(fields)) form.set(name, file);
  return form;
}

const encode: Record<BodyKind, (body: unknown) => string | URLSearchParams | FormData> = {
  json: (body) => JSON.stringify(body),
  form: (body) => new URLSearchParams(body as Record<string, string>),
  multipart: (body) => formData(body as Record<string, Blob>),
};

/** Returns whether the reply is a JSON error. An HTML error page is not. */
export function isError({ status, headers }: Response): boolean {
  return status >= 400 && (headers.get('content-type') ?? '').startsWith('application/json');
}

/** Checks an error reply against the contract and returns its envelope. Throws ContractViolation. */
export function checkError(endpoint: Endpoint, status: number, body: unknown): ErrorEnvelope {
  const where = `${endpoint.method} ${endpoint.path} returned ${status}`;
  const envelope = errorEnvelope.safeParse(body);
  if (!envelope.success)
    throw new ContractViolation(`${where} without the error envelope: ${JSON.stringify(body)}`);
  const code = errorsOf(endpoint).find((known) => known === envelope.data.error);
  if (!code) throw new ContractViolation(`${where} with the undocumented error ${envelope.data.error}`);
  if (errors[code].status !== status || envelope.data.code !== status) {
    throw new ContractViolation(`${where}, but ${code} is ${errors[code].status}`);
  }
  return envelope.data;
}

/** Calls an endpoint. Throws ContractViolation if the reply does not match the contract, and the errors of fetch. */
export async function call<const E extends Endpoint>(
  baseUrl: string,
  endpoint: E,
  options: CallOptions<E> = {},
): Promise<Answer<E>> {
  const headers = new Headers(options.headers);
  if (options.token) headers.set('Authorization', `Bearer ${options.token}`);
  const kind = options.body === undefined ? undefined : endpoint.body?.kinds[0];
  if (kind === 'json') headers.set('Content-Type', 'application/json');
  const body = kind === undefined ? null : encode[kind](options.body);
  const response = await fetch(baseUrl + target(endpoint, options as CallOptions<Endpoint>), {
    method: endpoint.method,
    headers,
    body,
    redirect: 'manual',
    signal: options.signal ?? null,
  });
  const answer = { status: response.status, headers: response.headers };
  const expected = endpoint.responses[answer.status];
  if (!expected || isError(response)) {
    const error = checkError(endpoint, answer.status, await response.json().catch(() => undefined));
    return { ...answer, body: undefined, error };
  }
  if (!expected.schema) {
    await response.arrayBuffer();
    return { ...answer, body: undefined } as Answer<E>;
  }
  const parsed = expected.schema.safeParse(await response.json());
  if (!parsed.success) {
    throw new ContractViolation(
      `${endpoint.method} ${endpoint.path} returned ${answer.status}: ${parsed.error.message}`,
    );
  }
  return { ...answer, body: parsed.data } as Answer<E>;
}
