import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { internalPortOffset, portOf, type Service, serviceOf, services } from '@content-platform/contract';
import { ROOT } from './config.ts';
import { HOST } from './ports.ts';
import { environmentOf, mainOf, prepare, type ServiceContext } from './services.ts';
import type { Stack } from './stack-file.ts';
import type { ProcessSpec } from './supervised.ts';

const readyWithinMs = 60_000;
/** Node flags of every process of the platform. */
export const NODE_FLAGS = [
  // Suppresses Node warnings that are irrelevant to the platform.
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
  // Sends traces if OTEL_EXPORTER_OTLP_ENDPOINT is set.
  `--import=${pathToFileURL(join(ROOT, 'services/chassis/telemetry.ts')).href}`,
];

const at = (port: number): string => `http://${HOST}:${port}`;

/** Returns the public and the internal port of a service, derived from the gateway's port. */
export function portsOf({ port }: Service, gatewayPort: number): [number, number] {
  const own = gatewayPort + port - portOf('gateway');
  return [own, own + internalPortOffset];
}

/** Returns the URLs of every service for stack.json. */
export function addressesOf(
  gatewayPort: number,
  pidOf: (name: string) => number = () => 0,
): Pick<Stack, 'gateway' | 'services'> {
  const addresses = services.map((service) => {
    const [open, internal] = portsOf(service, gatewayPort);
    return [service.name, { public: at(open), internal: at(internal), pid: pidOf(service.name) }] as const;
  });
  return { gateway: at(gatewayPort), services: Object.fromEntries(addresses) };
}

/**
 * Returns the definition of a platform process. It runs in the repository's folder and gets all settings as environment
 * variables.
 * @param portOverrides ports of proxies through which other processes reach a service, by service name
 */
export function serviceSpec(
  service: Service,
  gatewayPort: number,
  stores: Omit<ServiceContext, 'urlOf'>,
  portOverrides: Readonly<Record<string, number>> = {},
): ProcessSpec {
  const [port, internal] = portsOf(service, gatewayPort);
  const around: ServiceContext = {
    ...stores,
    urlOf(name, listener) {
      const open = portOverrides[name] ?? portsOf(serviceOf(name), gatewayPort)[0];
      return at(listener === 'public' ? open : open + internalPortOffset);
    },
  };
  return {
    name: service.name,
    command: process.execPath,
    // By default V8 grows the space of new objects to 48 MB for each process, and never shrinks it.
    args: [...NODE_FLAGS, '--max-semi-space-size=2', join(ROOT, mainOf(service))],
    cwd: ROOT,
    env: () => ({
      HOST,
      PORT: String(port),
      PUBLIC_URL: at(gatewayPort),
      ...environmentOf(service, around),
    }),
    prepare: () => prepare(service, around),
    ready: () => isReady(`${at(internal)}/health/ready`),
    readyWithinMs,
    // The whole stack stops, so no gateway has to notice first.
    stopSignal: 'SIGINT',
  };
}

async function isReady(url: string): Promise<void> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  await reply.body?.cancel();
  if (reply.status !== 200) throw new Error('not ready');
}
