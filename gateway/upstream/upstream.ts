import { createSemaphore, type Release } from '@content-platform/chassis';
import { onFinished, type GatewayResponse, type Middleware } from '../request-context.ts';
import type { Timeouts } from '../timeouts.ts';
import { startAttempt, type Service } from './attempt.ts';
import { upstreamErrors } from './failures.ts';
import { createForwardStream } from './forward-stream.ts';
import type { Instances } from './instances.ts';
import { createRequestHeaders } from './proxy-headers.ts';

export interface UpstreamOptions extends Pick<Service, 'logger' | 'metrics' | 'refuse'> {
  publicUrl: string;
  timeouts: Timeouts;
}

/** Limit of requests at one service, each on a connection of its own. More requests wait. */
export const maxRequests = 512;

/** Limit of waiting requests: they wait about as long as the requests at the service take. */
const maxWaiting = 512;

/** Creates the step that sends requests to the service `name` at `url`. It throws 503 when there are too many. */
export function createUpstream(
  name: string,
  url: URL,
  instances: Instances,
  { publicUrl, timeouts, ...options }: UpstreamOptions,
): Middleware {
  const service: Service = {
    ...options,
    name,
    instances,
    requestHeaders: createRequestHeaders(url.host, publicUrl),
    forwardStream: createForwardStream(url, timeouts.drain),
    responseMs: timeouts.response,
  };
  const slots = createSemaphore(maxRequests, maxWaiting);

  /** Resolves with undefined if the client disconnects. */
  async function waitForSlot(response: GatewayResponse): Promise<Release | undefined> {
    const waiting = new AbortController();
    const stop = () => waiting.abort(new Error(`${maxRequests} requests are at ${name}`));
    const timer = setTimeout(stop, timeouts.response);
    const cancel = onFinished(response, stop);
    try {
      return await slots.wait(waiting.signal);
    } catch (error) {
      if (response.destroyed) return undefined;
      options.metrics.upstreamErrors.inc({ service: name, reason: 'busy' });
      throw upstreamErrors.busy(error);
    } finally {
      clearTimeout(timer);
      cancel();
    }
  }

  return async (request, response) => {
    // The client disconnected during an earlier step, and its 'close' event has passed.
    if (response.destroyed) return;
    const release = slots.take() ?? (await waitForSlot(response));
    if (!release) return;
    const { bodyStream } = response.locals;
    if (bodyStream?.errored) {
      release();
      throw bodyStream.errored;
    }
    startAttempt(service, request, response, release);
  };
}
