import { AsyncLocalStorage } from 'node:async_hooks';
import { outsideTrace } from './tracing.ts';

/** What is known of the request that is being worked on, for logs and measurements further down. */
export interface RequestContext {
  requestId: string;
  /** Template from the contract. */
  route: string;
  /** Calls to the database so far, and their time in ms. */
  database: { calls: number; ms: number };
  /** hit, miss or bypass, once known. */
  cache?: string;
}

const storage = new AsyncLocalStorage<RequestContext>();

export function runInContext<T>(context: RequestContext, work: () => T): T {
  return storage.run(context, work);
}

/** For what is neither the request's nor its trace's, though it was set up while one was worked on. */
export function outsideContext<T>(work: () => T): T {
  return storage.exit(() => outsideTrace(work));
}

/** Undefined outside a request: at start, in a consumer, in a timer. */
export function currentContext(): RequestContext | undefined {
  return storage.getStore();
}
