import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { internalPortOffset, portOf, type Service, serviceOf, services } from '@content-platform/contract';
import { ROOT } from './config.ts';
import { HOST } from './ports.ts';
import { environmentOf, mainOf, prepare, type ServiceContext } from './services.ts';
import type { Stack } from './stack-file.ts';
import type { ProcessSpec } from './supervised.ts';

const readyWithinMs = 60_000;
/** What every process of the platform is started with. */
export const NODE_FLAGS = [
  // Node's own warnings that say nothing about the platform.
  '--disable-warning=ExperimentalWarning',
  '--disable-warning=TimeoutNegativeWarning',
  // Traces, where OTEL_EXPORTER_OTLP_ENDPOINT is set.
  `--import=${pathToFileURL(join(ROOT, 'services/chassis/telemetry.ts')).href}`,
];

const at = (port: number): string => `http://${HOST}:${port}`;

/** The ports of a service, given the gateway's: the public one and the internal one. */
export function portsOf({ port }: Service, gatewayPort: number): [number, number] {
  const own = gatewayPort + port - portOf('gateway');
  return [own, own + internalPortOffset];
}

/** The addresses of every service, as stack.json tells them. */
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
 * How one of the platform's processes is started: from the repository's folder, told everything by its environment.
 * @param portOverrides the ports at which other processes reach a service through a proxy, by its name
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
    args: [...NODE_FLAGS, join(ROOT, mainOf(service))],
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
    // Everything stops: nobody has to be told first.
    stopSignal: 'SIGINT',
  };
}

async function isReady(url: string): Promise<void> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  await reply.body?.cancel();
  if (reply.status !== 200) throw new Error('not ready');
}
