import { createSemaphore, type Release } from '@content-platform/chassis';
import { onFinished, type GatewayRequest, type GatewayResponse, type Step } from '../request-context.ts';
import type { Timeouts } from '../timeouts.ts';
import { startAttempt, type Service } from './attempt.ts';
import { upstreamErrors } from './transport.ts';
import { createForwardStream } from './forward-stream.ts';
import { createInstances } from './instances.ts';
import { createRequestHeaders } from './proxy-headers.ts';
import type { Resolve } from './connect.ts';

interface UpstreamOptions extends Pick<Service, 'logger' | 'metrics' | 'refuse'> {
  publicUrl: string;
  timeouts: Timeouts;
  /** Maximum number of concurrent requests to one service, each on its own connection. The same number may wait. */
  maxRequests: number;
  resolve: Resolve;
}

export type Upstream = ReturnType<typeof createUpstream>;

/** Creates the client of the service `name` at `url`. */
export function createUpstream(
  name: string,
  url: URL,
  { publicUrl, timeouts, maxRequests, resolve, ...options }: UpstreamOptions,
) {
  const instances = createInstances(url, timeouts, maxRequests, resolve);
  const service: Service = {
    ...options,
    name,
    instances,
    requestHeaders: createRequestHeaders(url.host, publicUrl),
    forwardStream: createForwardStream(url, timeouts.drain),
    responseMs: timeouts.response,
  };
  const slots = createSemaphore(maxRequests, maxRequests);

  /** Resolves with undefined if the client disconnects. */
  async function waitForSlot(response: GatewayResponse): Promise<Release | undefined> {
    const waiting = new AbortController();
    const stop = () => waiting.abort(new Error(`${maxRequests} requests to ${name} are in progress`));
    const timer = setTimeout(stop, timeouts.response);
    const cancel = onFinished(response, stop);
    try {
      return await slots.acquire(waiting.signal);
    } catch (error) {
      if (response.destroyed) return undefined;
      options.metrics.upstreamErrors.inc({ service: name, reason: 'busy' });
      throw upstreamErrors.busy(error);
    } finally {
      clearTimeout(timer);
      cancel();
    }
  }

  function start(request: GatewayRequest, response: GatewayResponse, release: Release): void {
    const { bodyStream } = response.locals;
    if (!bodyStream?.errored) return startAttempt(service, request, response, release);
    release();
    throw bodyStream.errored;
  }

  /** Sends the request to the service. Throws 503 if too many requests wait. */
  const forward: Step = (request, response) => {
    // The client disconnected during an earlier step, and its 'close' event has passed.
    if (response.destroyed) return;
    const release = slots.tryAcquire();
    if (release) return start(request, response, release);
    // The slot may have come from another request of this connection, which ended because the client disconnected.
    return waitForSlot(response).then(
      (waited) => waited && (response.destroyed ? waited() : start(request, response, waited)),
    );
  };

  return { forward, isUp: instances.isUp, stop: instances.stop };
}
