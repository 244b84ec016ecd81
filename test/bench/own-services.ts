import type { ChildProcess } from 'node:child_process';
import { internalPortOffset, serviceOf, type ServiceName } from '@content-platform/contract';
import {
  environmentOf,
  mainOf,
  NODE_FLAGS,
  type ServiceContext,
} from '../../deploy/local/service-process.ts';
import { startNode } from './gateway/processes.ts';

export const issuer = 'http://gateway.bench';

const nowhere: ServiceContext = {
  postgres: '',
  logs: '',
  redis: '',
  kafka: '',
  media: '',
  urlOf: () => '',
  secretsFile: '',
};

const internalOf = (url: string): string =>
  url.replace(/\d+$/, (digits) => String(Number(digits) + internalPortOffset));

/** Starts a service as `npm start` does; `auth` provides the keys and revocations. Its logs are discarded. */
function start(
  name: ServiceName,
  port: number,
  auth: string,
  overrides: Partial<ServiceContext>,
  settings: Record<string, string>,
): ChildProcess {
  const service = serviceOf(name);
  const env = {
    ...environmentOf(service, { ...nowhere, ...overrides }),
    PORT: String(port),
    PUBLIC_URL: issuer,
    AUTH_URL: auth,
    AUTH_INTERNAL_URL: internalOf(auth),
    SERVICE_SECRET: 'a-service-secret-that-no-auth-knows',
    ...settings,
  };
  return startNode(mainOf(service), env, NODE_FLAGS);
}

/** Starts the platform's gateway with limits a thousand times higher: it counts requests and refuses none. */
export function startGateway(
  port: number,
  overrides: { upstream: string; redis: string; contentCache?: string },
  settings: Record<string, string> = {},
): ChildProcess {
  const { upstream, redis, contentCache = upstream } = overrides;
  const urlOf: ServiceContext['urlOf'] = (name) => (name === 'content-cache' ? contentCache : upstream);
  return start('gateway', port, upstream, { redis, urlOf }, { RATE_LIMIT_SCALE: '1000', ...settings });
}

/** Starts the platform's content-cache, by default with its default settings. */
export function startContentCache(
  port: number,
  { auth, ...stores }: { auth: string } & Pick<ServiceContext, 'postgres' | 'logs' | 'redis' | 'kafka'>,
  settings: Record<string, string> = {},
): ChildProcess {
  return start('content-cache', port, auth, stores, settings);
}

/** Returns whether the process at `port` is ready and not degraded. */
export async function isReady(port: number, host = '127.0.0.1'): Promise<boolean> {
  const response = await fetch(`http://${host}:${port + internalPortOffset}/health/ready`);
  return ((await response.json()) as { status: string }).status === 'ok';
}
