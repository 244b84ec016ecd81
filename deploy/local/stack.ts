import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createLogger, prepareDatabases } from '@content-platform/chassis';
import { type Service, services } from '@content-platform/contract';
import type { External } from './config.ts';
import { CREDENTIALS_FILE, type Credentials } from './content-server/settings.ts';
import { DEMO_CLIENT } from './demo-data.ts';
import { prepareIdentityDemo } from './identity-demo/demo.ts';
import { startKafka } from './kafka.ts';
import { readableLine } from './log-view.ts';
import { startMailCatcher } from './mail-catcher.ts';
import { isFree } from './ports.ts';
import { startPostgres } from './postgres.ts';
import { Problem, Stopped } from './problem.ts';
import { createProcessTiers } from './process-tiers.ts';
import { startRedis } from './redis.ts';
import { enableContentServerLogin, refuseRemoteDemoData, seed } from './seed.ts';
import { addressesOf, portsOf, type ServiceContext, serviceSpec } from './service-process.ts';
import { PROMETHEUS_TARGETS, prometheusTargets, type Stack } from './stack-file.ts';
import { derivedSecret, openState, type Secrets, writePrivate } from './state.ts';
import type { StackContext } from './stores.ts';
import type { Terminal } from './terminal.ts';

interface StackOptions extends Pick<StackContext, 'external' | 'usualPorts' | 'proxy' | 'needsKafka'> {
  /** State folder of the stack. */
  state: string;
  gatewayPort: number;
  /** Networks whose X-Forwarded-For the gateway trusts, so that a test can simulate many clients. */
  trustedProxies?: string;
  /** Start the demo identity provider and allow logins there. */
  identityDemo?: boolean;
  /** Password for the role `content_server`. Default: the generated one of the state folder. */
  contentServerPassword?: string | undefined;
  /** Show the services' logs on the terminal. The state folder has them in any case. */
  showLogs: boolean;
  terminal: Terminal;
  /** Stops the stack, also during the start. Its reason is a Stopped. */
  signal: AbortSignal;
}

export type RunningStack = Awaited<ReturnType<typeof startStack>>;

type StoreAddresses = Omit<Stack, 'gateway' | 'services'>;

const orphanGraceMs = 5_000;

/**
 * Starts PostgreSQL, Redis, Kafka and every service, and adds the demo data.
 * @throws Problem if a part cannot start, Stopped if `signal` aborts; in both cases every process is stopped
 */
export async function startStack(options: StackOptions) {
  const { external, gatewayPort, terminal, showLogs } = options;
  if (external.databaseUrl) refuseRemoteDemoData(external.databaseUrl);
  const state = openState(options.state, addressesOf(gatewayPort).gateway);
  const stackFile = state.path('stack.json');
  const end = new AbortController();
  const signal = AbortSignal.any([options.signal, end.signal]);
  const mailCatcher = await startMailCatcher(state.path('mail'));
  let writeStackFiles: (() => void) | undefined;
  const processes = createProcessTiers({
    state,
    terminal,
    signal,
    onRestart: () => writeStackFiles?.(),
    onAbandoned: (problem) => end.abort(problem),
  });
  const step: Terminal['step'] = (name, work) => terminal.step(name, work, signal);
  // Until `publish`, shows only errors: warnings are normal in a start, for example while Kafka creates its topics.
  const showLine = (name: string, line: string): void => {
    const { level, text } = readableLine(name, line);
    if (showLogs && (writeStackFiles || ['error', 'fatal'].includes(level))) terminal.line(text);
  };

  /** Waits for all steps. If one fails, aborts the others and waits for them, so that no process starts after a stop. */
  async function together<T>(works: Promise<T>[]): Promise<void> {
    try {
      await Promise.all(works);
    } catch (error) {
      end.abort(error);
      await Promise.allSettled(works);
      throw signal.reason;
    }
  }

  async function startStores(): Promise<StoreAddresses> {
    const reserved = services.flatMap((service) => portsOf(service, gatewayPort));
    const up: StackContext['up'] = (spec) => processes.up('stores', spec);
    const context: StackContext = { ...options, reserved, state, signal, up };
    const postgres = step('PostgreSQL', (report) => startPostgres(context, report));
    const redis = step('Redis', (report) => startRedis(context, report));
    const kafka = step('Kafka', (report) => startKafka(context, report));
    await together<unknown>([postgres, redis, kafka]);
    const { platform, logs } = await postgres;
    return { postgres: platform, logs, redis: await redis, kafka: await kafka };
  }

  /** Starts the demo identity provider and returns the settings of the auth service for it. */
  const startIdentityDemo = (): Promise<Record<string, string>> =>
    step('identity provider', async (report) => {
      const { issuer, spec, environment } = await prepareIdentityDemo(gatewayPort);
      await processes.up('services', spec);
      report(`at ${issuer}`);
      return environment;
    });

  async function startServices(stores: StoreAddresses, asUser: AsUser): Promise<void> {
    const overrides = await startProxies(options, stores);
    const context = {
      ...stores,
      ...overrides.stores,
      kafka: stores.kafka ?? '',
      trustedProxies: options.trustedProxies,
      identity: options.identityDemo ? await startIdentityDemo() : undefined,
      mail: mailCatcher.settings,
      media: state.path('media'),
      asUser,
      secretsFile: state.path('secrets.json'),
    };
    const start = (service: Service): Promise<void> =>
      step(service.name, async (report) => {
        const { name } = service;
        const spec = serviceSpec(service, gatewayPort, context, overrides.ports);
        const tier = name === 'gateway' ? 'gateway' : 'services';
        await processes.up(tier, { ...spec, onLine: (line) => showLine(name, line) });
        report(`at ${addressesOf(gatewayPort).services[name]?.public}`);
      });
    await together(services.map(start));
  }

  /** Adds the demo data and writes the settings of `npm run content-server` to a file beside stack.json. */
  async function addDemoData(ownerUrl: string): Promise<Credentials> {
    await seed(ownerUrl);
    const password = options.contentServerPassword ?? state.secrets.contentServerPassword;
    const database = await enableContentServerLogin(ownerUrl, password);
    const credentials = { database, clientId: DEMO_CLIENT.name, clientSecret: DEMO_CLIENT.secret };
    writePrivate(state.path(CREDENTIALS_FILE), credentials);
    return credentials;
  }

  async function start(): Promise<{ stores: StoreAddresses; credentials: Credentials }> {
    const orphans = await state.stopOrphans(orphanGraceMs);
    if (orphans > 0) terminal.line(`Stopped ${orphans} processes that a killed run had left.`);
    await refuseTakenPorts(gatewayPort);
    const stores = await startStores();
    const asUser = createAsUser(stores.postgres, external, state.secrets);
    await step('schemas and roles', () => prepareStores(stores, asUser, signal));
    await startServices(stores, asUser);
    return { stores, credentials: await step('demo data', () => addDemoData(stores.postgres)) };
  }

  /** Stops every process, callers first; resolves when all have ended. */
  async function stop(): Promise<void> {
    end.abort(new Stopped());
    rmSync(stackFile, { force: true });
    await processes.stop();
    await mailCatcher.close();
    state.release();
  }

  rmSync(stackFile, { force: true });
  try {
    const { stores, credentials } = await start();
    const currentStack = (): Stack => ({ ...addressesOf(gatewayPort, processes.pidOf), ...stores });
    return {
      stack: currentStack,
      contentServer: { ...credentials, gateway: currentStack().gateway, kafka: stores.kafka },
      /** Writes stack.json and Prometheus' targets, now and after each restart. From then on showLine shows all. */
      publish(): void {
        writeStackFiles = () => {
          writePrivate(stackFile, currentStack());
          writePrivate(state.path(PROMETHEUS_TARGETS), prometheusTargets(currentStack()));
        };
        writeStackFiles();
      },
      /** Resolves when the stack has to end: with a Problem, or with Stopped. */
      ended: (signal.aborted ? Promise.resolve() : once(signal, 'abort')).then((): unknown => signal.reason),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type AsUser = NonNullable<ServiceContext['asUser']>;

/**
 * Returns a function that puts a service's user and password into the URL of a store. Database roles belong to the
 * whole server, so their names begin with the database's.
 */
function createAsUser(platform: string, { redisUrl }: External, secrets: Secrets): AsUser {
  const database = new URL(platform).pathname.slice(1);
  return (name, url) => {
    const own = new URL(url);
    const isRedis = own.protocol.startsWith('redis');
    // The Redis of REDIS_URL has no users for services. `url` may differ from REDIS_URL: a test's proxy in front of it.
    if (isRedis && redisUrl) return url;
    own.username = isRedis ? name : `${database}_${name}`.replaceAll('-', '_');
    own.password = derivedSecret(secrets, `${isRedis ? 'redis' : 'role'} ${name}`);
    return own.href;
  };
}

/** Migrates the databases and creates a role for each service. */
async function prepareStores(stores: StoreAddresses, asUser: AsUser, signal: AbortSignal): Promise<void> {
  const { postgres: platform, logs } = stores;
  const logger = createLogger('launcher', 'error');
  for (const { name } of services)
    await prepareDatabases(name, { platform, logs, roleUrl: asUser(name, platform), logger, signal });
}

async function refuseTakenPorts(gatewayPort: number): Promise<void> {
  for (const service of services)
    for (const port of portsOf(service, gatewayPort))
      if (!(await isFree(port)))
        throw new Problem(
          `Port ${port}, which ${service.name} needs, is taken: stop what listens there, or move the stack with GATEWAY_PORT=9580 npm start.`,
        );
}

/** For a test: starts proxies of stores and services; returns their URLs and ports. kafka.ts starts that of Kafka. */
async function startProxies({ proxy, gatewayPort }: StackOptions, { postgres, logs, redis }: StoreAddresses) {
  const stores: Record<string, string> = {};
  const ports: Record<string, number> = {};
  if (!proxy) return { stores, ports };
  for (const [name, address] of Object.entries({ postgres, logs, redis })) {
    const url = new URL(address);
    url.port = String(await proxy(name, Number(url.port)));
    stores[name] = url.href;
  }
  for (const service of services)
    if (service.name !== 'gateway')
      ports[service.name] = await proxy(service.name, portsOf(service, gatewayPort)[0]);
  return { stores, ports };
}
