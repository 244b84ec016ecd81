import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { outsideTrace } from './tracing.ts';

/** The current request, for logs and measurements in the layers below. */
export interface RequestContext {
  requestId: string;
  /** Template from the contract. */
  route: string;
  /** Number of database calls so far, and their total time in ms. */
  database: { calls: number; ms: number };
  /** hit, miss or bypass, once known. */
  cache?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

export function runInContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** Runs work outside the current request and its trace, although a request started it. */
export function outsideContext<T>(work: () => T): T {
  return storage.exit(() => outsideTrace(work));
}

/** Returns undefined outside a request: at start, in a consumer, in a timer. */
export function currentContext(): RequestContext | undefined {
  return storage.getStore();
}

const acceptableId = /^[A-Za-z0-9._-]{1,128}$/;

/** Returns the client's X-Request-Id if it is 1 to 128 characters of [A-Za-z0-9._-], otherwise a new id. */
export function requestId(given: string | undefined): string {
  return given !== undefined && acceptableId.test(given) ? given : randomUUID();
}
