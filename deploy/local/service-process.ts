import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from './config.ts';
import { HOST, INTERNAL_OFFSET } from './ports.ts';
import { type Service, SERVICES, type Surrounding } from './services.ts';
import type { Stack } from './stack-file.ts';
import type { ProcessSpec } from './supervised.ts';

const READY_WITHIN_MS = 60_000;
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
export function portsOf({ offset }: Service, gatewayPort: number): [number, number] {
  return [gatewayPort + offset, gatewayPort + offset + INTERNAL_OFFSET];
}

/** The addresses of every service, as stack.json tells them. */
export function addressesOf(
  gatewayPort: number,
  pidOf: (name: string) => number,
): { gateway: string; services: Stack['services'] } {
  const services = SERVICES.map((service) => {
    const [open, internal] = portsOf(service, gatewayPort);
    return [service.name, { public: at(open), internal: at(internal), pid: pidOf(service.name) }] as const;
  });
  return { gateway: at(gatewayPort), services: Object.fromEntries(services) };
}

/**
 * How one of the platform's processes is started: from the repository's folder, told everything by its environment.
 * @param fronts the ports at which the others reach a service, by its name, where these are not its own
 */
export function serviceSpec(
  service: Service,
  gatewayPort: number,
  stores: Omit<Surrounding, 'urls' | 'internalUrls'>,
  fronts: Readonly<Record<string, number>> = {},
): ProcessSpec {
  const [port, internal] = portsOf(service, gatewayPort);
  const { gateway } = addressesOf(gatewayPort, () => 0);
  const { prepare } = service;
  const ports = SERVICES.map(
    (each) => [each.name, fronts[each.name] ?? portsOf(each, gatewayPort)[0]] as const,
  );
  const around = {
    ...stores,
    urls: Object.fromEntries(ports.map(([name, open]) => [name, at(open)])),
    internalUrls: Object.fromEntries(ports.map(([name, open]) => [name, at(open + INTERNAL_OFFSET)])),
  };
  return {
    name: service.name,
    command: process.execPath,
    args: [...NODE_FLAGS, join(ROOT, service.main)],
    cwd: ROOT,
    env: () => ({
      HOST,
      PORT: String(port),
      PUBLIC_URL: gateway,
      LOGS_DATABASE_URL: stores.logs,
      AUTH_URL: around.urls.auth ?? '',
      AUTH_INTERNAL_URL: around.internalUrls.auth ?? '',
      ...service.environment(around),
    }),
    ...(prepare && { prepare: () => prepare(around) }),
    ready: () => isReady(`${at(internal)}/health/ready`),
    readyWithinMs: READY_WITHIN_MS,
    // Everything stops: nobody has to be told first.
    stopSignal: 'SIGINT',
  };
}

async function isReady(url: string): Promise<void> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) });
  await reply.body?.cancel();
  if (reply.status !== 200) throw new Error('not ready');
}
