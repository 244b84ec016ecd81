import type { Middleware } from '../request-context.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** Creates the handler of /health, which lists the reachable services. The status is always 200: the gateway is up. */
export function showHealth(upstreams: ReadonlyMap<string, Upstream>): Middleware {
  return async (_request, response) => {
    const states = await Promise.all(
      [...upstreams].map(async ([name, { isUp }]) => [name, await isUp()] as const),
    );
    response.set('Cache-Control', 'no-store').json({
      status: states.every(([, isUp]) => isUp) ? 'ok' : 'degraded',
      services: Object.fromEntries(states.map(([name, isUp]) => [name, isUp ? 'up' : 'down'])),
    });
  };
}
