import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  addressSettings,
  internalPortOffset,
  portOf,
  type Service,
  type ServiceName,
  serviceOf,
  services,
} from '@content-platform/contract';
import { ROOT } from './config.ts';
import { readSecrets, rotateKeySecret } from './key-secret.ts';
import { checkReady, HOST } from './ports.ts';
import { Problem } from './problem.ts';
import { lastLines, runCommand } from './run-command.ts';
import { derivedSecret, type Secrets } from './state.ts';
import type { ProcessSpec } from './supervised.ts';

export interface ServiceContext {
  postgres: string;
  logs: string;
  redis: string;
  /** Kafka brokers; empty without Kafka. */
  kafka: string;
  media: string;
  /** Networks whose X-Forwarded-For the gateway trusts. */
  trustedProxies?: string | undefined;
  /** Settings of the auth service for an identity provider and for mails. */
  identity?: Record<string, string> | undefined;
  mail?: Record<string, string> | undefined;
  urlOf: (name: ServiceName, listener: 'public' | 'internal') => string;
  /** Returns the URL of a store with the user of the service; without it the process gets the URLs above. */
  asUser?: ((name: ServiceName, url: string) => string) | undefined;
  /** Read at each start, because `npm run admin -- rotate-key-secret` changes the secrets. Empty: the process gets none. */
  secretsFile: string;
}

/** Node flags of every process of the platform. */
export const NODE_FLAGS = [
  '--disable-warning=ExperimentalWarning',
  // V8 compiles in 4 threads by default. On 2 cores, requests then waited up to 0.3 s for a core.
  '--v8-pool-size=1',
  // Sends traces if OTEL_EXPORTER_OTLP_ENDPOINT is set.
  `--import=${pathToFileURL(join(ROOT, 'services/chassis/telemetry.ts')).href}`,
];

const at = (port: number): string => `http://${HOST}:${port}`;

/** Returns the public and the internal port of a service, derived from the gateway's port. */
export function portsOf({ port }: Service, gatewayPort: number): [number, number] {
  const publicPort = gatewayPort + port - portOf('gateway');
  return [publicPort, publicPort + internalPortOffset];
}

/** Returns the URLs of every service for stack.json. */
export function addressesOf(gatewayPort: number, pidOf: (name: string) => number = () => 0) {
  const addresses = services.map((service) => {
    const [port, internal] = portsOf(service, gatewayPort);
    return [service.name, { public: at(port), internal: at(internal), pid: pidOf(service.name) }] as const;
  });
  return { gateway: at(gatewayPort), services: Object.fromEntries(addresses) };
}

/** Returns the secret with which auth gives a service tokens for internal listeners. */
export const serviceSecret = (name: ServiceName, secrets: Secrets): string =>
  derivedSecret(secrets, `service ${name}`);

function ownSettings({ name, hasSecret }: Service, context: ServiceContext): Record<string, string> {
  const { trustedProxies, secretsFile, media, identity, mail } = context;
  if (name === 'gateway' && trustedProxies !== undefined) return { TRUSTED_PROXIES: trustedProxies };
  if (name === 'auth') {
    const secrets = readSecrets(secretsFile);
    const pairs = services
      .filter((one) => one.hasSecret)
      .map((one) => `${one.name}:${serviceSecret(one.name, secrets)}`);
    return { AUTH_KEY_SECRET: secrets.authKeySecret, SERVICE_SECRETS: pairs.join(','), ...identity, ...mail };
  }
  return {
    ...(name === 'media-upload' && { MEDIA_FOLDER: media }),
    ...(hasSecret && secretsFile && { SERVICE_SECRET: serviceSecret(name, readSecrets(secretsFile)) }),
  };
}

/** Returns the environment of a service without HOST, PORT and PUBLIC_URL. */
export function environmentOf(service: Service, context: ServiceContext): Record<string, string> {
  const { asUser = (_, url) => url, postgres, redis, kafka, logs } = context;
  const settings = {
    postgres: { DATABASE_URL: asUser(service.name, postgres) },
    redis: { REDIS_URL: asUser(service.name, redis) },
    kafka: { KAFKA_BROKERS: kafka },
  };
  return Object.assign(
    { LOGS_DATABASE_URL: asUser(service.name, logs) },
    ...service.stores.map((store) => settings[store]),
    addressSettings(service, context.urlOf),
    ownSettings(service, context),
  ) as Record<string, string>;
}

/** Main file of a service, relative to the repository. */
export const mainOf = ({ name }: Service): string =>
  name === 'gateway' ? 'gateway/main.ts' : `services/${name}/main.ts`;

/** Completes an interrupted rotation of the key secret. @throws Problem if that fails; the next start retries */
async function finishRotation(database: string, secretsFile: string): Promise<void> {
  if (readSecrets(secretsFile).nextAuthKeySecret === undefined) return;
  const command = [join(ROOT, 'services', 'auth', 'admin.ts'), 'rotate-key-secret'];
  await rotateKeySecret(database, secretsFile, async (env) => {
    const { code, output } = await runCommand(process.execPath, command, { env, within: 60_000 });
    if (code === 0) return true;
    throw new Problem(
      `A rotation of the key secret was interrupted, and cannot be finished with the secrets in ${secretsFile}.`,
      lastLines(output),
    );
  });
}

/**
 * Returns the definition of a platform process. It runs in the repository's folder and gets all settings as environment
 * variables.
 * @param portOverrides ports of proxies through which other processes reach a service, by service name
 */
export function serviceSpec(
  service: Service,
  gatewayPort: number,
  context: Omit<ServiceContext, 'urlOf'>,
  portOverrides: Readonly<Record<string, number>> = {},
): ProcessSpec {
  const { name } = service;
  const [port, internal] = portsOf(service, gatewayPort);
  const urlOf: ServiceContext['urlOf'] = (other, listener) => {
    const publicPort = portOverrides[other] ?? portsOf(serviceOf(other), gatewayPort)[0];
    return at(listener === 'public' ? publicPort : publicPort + internalPortOffset);
  };
  return {
    name,
    command: process.execPath,
    // By default V8 grows the space of new objects to 48 MB for each process, and never shrinks it.
    args: [...NODE_FLAGS, '--max-semi-space-size=2', join(ROOT, mainOf(service))],
    cwd: ROOT,
    env: () => ({
      HOST,
      PORT: String(port),
      PUBLIC_URL: at(gatewayPort),
      ...environmentOf(service, { ...context, urlOf }),
    }),
    async prepare() {
      if (name === 'auth') await finishRotation(context.postgres, context.secretsFile);
    },
    ready: () => checkReady(`${at(internal)}/health/ready`),
    readyWithinMs: 60_000,
    // After SIGTERM a process serves until gateways have noticed its stop. Not needed: here the whole stack stops.
    stopSignal: 'SIGINT',
  };
}
