import type { Step } from './exchange.ts';

export interface Health {
  status: 'ok' | 'degraded';
  services: Record<string, 'up' | 'down'>;
}

const timeoutMs = 1_000;
const rememberedMs = 1_000;

/** The readiness of the service at `address`: its internal listener is 1000 above its public one. */
function readyUrl(address: string): URL {
  const url = new URL('/health/ready', address);
  url.port = String(Number(url.port || (url.protocol === 'https:' ? 443 : 80)) + 1000);
  return url;
}

async function isReady(url: URL): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'error' });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** Asks every service whether it is ready, at most once a second, whoever asks. */
export function createHealth(services: Readonly<Record<string, string>>): () => Promise<Health> {
  const urls = Object.entries(services).map(([name, address]) => [name, readyUrl(address)] as const);
  let known: Promise<Health> | undefined;
  let askedAt = -Infinity;

  async function ask(): Promise<Health> {
    const states = await Promise.all(
      urls.map(async ([name, url]) => [name, (await isReady(url)) ? 'up' : 'down'] as const),
    );
    const status = states.every(([, state]) => state === 'up') ? 'ok' : 'degraded';
    return { status, services: Object.fromEntries(states) };
  }

  return () => {
    if (!known || performance.now() - askedAt > rememberedMs) {
      askedAt = performance.now();
      known = ask();
    }
    return known;
  };
}

/** Always 200: the gateway itself answers. */
export function showHealth(services: Readonly<Record<string, string>>): Step {
  const health = createHealth(services);
  return async (_request, response) => {
    response.set('Cache-Control', 'no-store').json(await health());
  };
}
