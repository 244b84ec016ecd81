import type { Step } from './exchange.ts';
import type { Instances } from './instances.ts';

/** Which services can be reached. Always 200: the gateway itself answers. */
export function showHealth(services: Readonly<Record<string, Instances>>): Step {
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
