import type { Middleware } from '../request-context.ts';
import type { Instances } from '../upstream/instances.ts';

/** Creates the answer of /health: the services that can be reached. Always 200: the gateway itself is up. */
export function showHealth(services: Readonly<Record<string, Instances>>): Middleware {
  return async (_request, response) => {
    const states = await Promise.all(
      Object.entries(services).map(async ([name, instances]) => [name, await instances.isUp()] as const),
    );
    response.set('Cache-Control', 'no-store').json({
      status: states.every(([, isUp]) => isUp) ? 'ok' : 'degraded',
      services: Object.fromEntries(states.map(([name, isUp]) => [name, isUp ? 'up' : 'down'])),
    });
  };
}
