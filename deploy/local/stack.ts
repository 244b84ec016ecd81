import { rmSync } from 'node:fs';
import type { External } from './config.ts';
import { CREDENTIALS_FILE, type Credentials, type Settings } from './content-server/settings.ts';
import { DEMO_CLIENT } from './demo-data.ts';
import type { Databases } from './databases.ts';
import { prepareIdentityDemo } from './identity-demo/demo.ts';
import { readableLine } from './log-view.ts';
import { startMailCatcher } from './mail-catcher.ts';
import { isFree } from './ports.ts';
import { Problem, Stopped } from './problem.ts';
import { createProcessTiers, type ProcessTiers } from './process-tiers.ts';
import { enableContentServerLogin, refuseRemoteDemoData, seed } from './seed.ts';
import { addressesOf, portsOf, serviceSpec } from './service-process.ts';
import type { ServiceContext } from './services.ts';
import { createLogger, prepareDatabases } from '@content-platform/chassis';
import { type Service, services } from '@content-platform/contract';
import type { Stack } from './stack-file.ts';
import { derivedSecret, openState, type Secrets, type State, writePrivate } from './state.ts';
import { type StackContext, startKafka, startPostgres, type StartProxy, startRedis } from './stores.ts';
import type { Report, Terminal } from './terminal.ts';

interface StackOptions {
  /** State folder of the stack. */
  state: string;
  gatewayPort: number;
  /** Use the default ports of PostgreSQL, Redis and Kafka if they are free. */
  usualPorts: boolean;
  external: External;
  /** Networks whose X-Forwarded-For the gateway trusts, so that a test can simulate many clients. */
  trustedProxies?: string;
  /** Puts a proxy in front of each store and service; without it processes connect directly. */
  proxy?: StartProxy;
  /** Start the demo identity service and allow logins there. */
  identityDemo?: boolean;
  /** Password for the role `content_server`. Default: the generated one of the state folder. */
  contentServerPassword?: string | undefined;
  /** Fail without Kafka. */
  needsKafka: boolean;
  /** Show the services' logs on the terminal. The state folder has them in any case. */
  showLogs: boolean;
  terminal: Terminal;
  /** Stops the stack, also during the start. Its reason is a Stopped. */
  signal: AbortSignal;
}

export type RunningStack = Awaited<ReturnType<typeof startStack>>;

type StoreAddresses = Omit<Stack, 'gateway' | 'services'>;

/** State of a stack during its start. */
interface Run {
  options: StackOptions;
  state: State;
  processes: ProcessTiers;
  /** Settings of the auth service for mails. */
  mail: Record<string, string>;
  /** Aborts when the stack has to end; the reason says why. */
  end: AbortController;
  /** A step. If the stack is ending, a failure of the step has the reason of the end. */
  step: <T>(name: string, work: (report: Report) => Promise<T>) => Promise<T>;
}

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
  const { signal } = end;
  options.signal.addEventListener('abort', () => end.abort(options.signal.reason));
  if (options.signal.aborted) end.abort(options.signal.reason);
  const mailCatcher = await startMailCatcher(state.path('mail'));
  let publish: (() => void) | undefined;
  const processes = createProcessTiers({
    state,
    terminal,
    signal,
    onRestart: () => publish?.(),
    onAbandoned: (problem) => end.abort(problem),
  });
  const step: Run['step'] = (name, work) => {
    const reported = (report: Report) =>
      work(report).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : error;
      });
    return terminal.step(name, reported, signal);
  };
  // Shows only errors during the start, because warnings are normal then, for example while Kafka creates its topics.
  const showLine = (name: string, line: string): void => {
    const { level, text } = readableLine(name, line);
    if (showLogs && (publish || ['error', 'fatal'].includes(level))) terminal.line(text);
  };
  /** Stops every process, callers first; resolves when all have ended. */
  const stop = async (): Promise<void> => {
    end.abort(new Stopped());
    rmSync(stackFile, { force: true });
    await processes.stop();
    await mailCatcher.close();
    state.release();
  };

  rmSync(stackFile, { force: true });
  try {
    const { stores, credentials } = await startEverything(
      { options, state, processes, mail: mailCatcher.settings, end, step },
      showLine,
    );
    const readStack = (): Stack => ({ ...addressesOf(gatewayPort, processes.pidOf), ...stores });
    return {
      get stack(): Stack {
        return readStack();
      },
      /** Settings of the demo content server. */
      get contentServer(): Settings {
        const { gateway, kafka } = readStack();
        return { ...credentials, gateway, kafka };
      },
      /** Writes stack.json now and after each restart of a process. Afterwards the terminal shows the logs. */
      publish(): void {
        publish = () => writePrivate(stackFile, readStack());
        publish();
      },
      /** Resolves when the stack has to end: with a Problem, or with Stopped. */
      ended: new Promise<unknown>((resolve) => {
        if (signal.aborted) resolve(signal.reason);
        signal.addEventListener('abort', () => resolve(signal.reason));
      }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startEverything(
  run: Run,
  showLine: (name: string, line: string) => void,
): Promise<{ stores: StoreAddresses; credentials: Credentials }> {
  const { options, state, processes, end, step } = run;
  const orphans = await state.stopOrphans(orphanGraceMs);
  if (orphans > 0) options.terminal.line(`Stopped ${orphans} processes that a killed run had left.`);
  await refuseTakenPorts(options.gatewayPort);
  const context: StackContext = {
    ...options,
    state,
    signal: end.signal,
    up: (spec) => processes.up('stores', spec),
  };
  const [databases, redis, kafka] = await together(end, [
    step('PostgreSQL', (report) => startPostgres(context, report)),
    step('Redis', (report) => startRedis(context, report)),
    step('Kafka', (report) => startKafka(context, report)),
  ]);
  const stores = { postgres: databases.platform, logs: databases.logs, redis, kafka };
  const asUser = createAsUser(databases.platform, options.external, state.secrets);
  await step('schemas and roles', () => prepareStores(databases, asUser, end.signal));
  const overrides = await startProxies(options, stores);
  const identity = options.identityDemo ? await startIdentityDemo(run) : undefined;
  const known = {
    ...stores,
    ...overrides.stores,
    kafka: kafka ?? '',
    trustedProxies: options.trustedProxies,
    identity,
    mail: run.mail,
    media: state.path('media'),
    asUser,
    secretsFile: state.path('secrets.json'),
  };
  const startService = (service: Service): Promise<void> =>
    step(service.name, async (report) => {
      const { name } = service;
      const spec = serviceSpec(service, options.gatewayPort, known, overrides.ports);
      const tier = name === 'gateway' ? 'gateway' : 'services';
      await processes.up(tier, { ...spec, onLine: (line) => showLine(name, line) });
      report(`at ${addressesOf(options.gatewayPort).services[name]?.public}`);
    });
  await together(end, services.map(startService));
  const credentials = await step('demo data', () =>
    addDemoData(databases.platform, state, options.contentServerPassword),
  );
  return { stores, credentials };
}

type AsUser = NonNullable<ServiceContext['asUser']>;

/** Database roles belong to the whole server, so their names begin with the database's. */
function createAsUser(platform: string, { redisUrl }: External, secrets: Secrets): AsUser {
  const database = new URL(platform).pathname.slice(1);
  return (name, url) => {
    if (url === '' || url === redisUrl) return url;
    const own = new URL(url);
    const isRedis = own.protocol === 'redis:';
    own.username = isRedis ? name : `${database}_${name}`.replaceAll('-', '_');
    own.password = derivedSecret(secrets, `${isRedis ? 'redis' : 'role'} ${name}`);
    return own.href;
  };
}

/** Migrates the databases and creates a role for each service. */
async function prepareStores(
  { platform, logs }: Databases,
  asUser: AsUser,
  signal: AbortSignal,
): Promise<void> {
  const logger = createLogger('launcher', 'error');
  for (const { name } of services)
    await prepareDatabases(name, { platform, logs, role: asUser(name, platform), logger, signal });
}

/** Waits for all steps. If one fails, aborts the others and waits for them, so that no process starts after a stop. */
async function together<T extends readonly unknown[]>(
  end: AbortController,
  works: { [K in keyof T]: Promise<T[K]> },
): Promise<T> {
  try {
    return (await Promise.all(works)) as unknown as T;
  } catch (error) {
    end.abort(error);
    await Promise.allSettled(works);
    throw end.signal.reason;
  }
}

async function refuseTakenPorts(gatewayPort: number): Promise<void> {
  for (const service of services)
    for (const port of portsOf(service, gatewayPort))
      if (!(await isFree(port)))
        throw new Problem(
          `Port ${port}, which ${service.name} needs, is taken: stop what listens there, or move the stack with GATEWAY_PORT=9580 npm start.`,
        );
}

/** Starts the demo identity service and returns the settings of the auth service for it. */
function startIdentityDemo({ options, processes, step }: Run): Promise<Record<string, string>> {
  return step('identity service', async (report) => {
    const { issuer, spec, environment } = await prepareIdentityDemo(options.gatewayPort);
    await processes.up('services', spec);
    report(`at ${issuer}`);
    return environment;
  });
}

/** URLs and ports of proxies that processes use instead of the real ones. */
interface Overrides {
  stores: Partial<Pick<Stack, 'postgres' | 'logs' | 'redis'>>;
  ports: Record<string, number>;
}

async function startProxies(
  { proxy, gatewayPort }: StackOptions,
  { postgres, logs, redis }: StoreAddresses,
): Promise<Overrides> {
  if (!proxy) return { stores: {}, ports: {} };
  const stores: Record<string, string> = {};
  for (const [name, address] of Object.entries({ postgres, logs, redis })) {
    const url = new URL(address);
    url.port = String(await proxy(name, Number(url.port)));
    stores[name] = url.href;
  }
  const ports: Record<string, number> = {};
  for (const service of services)
    if (service.name !== 'gateway')
      ports[service.name] = await proxy(service.name, portsOf(service, gatewayPort)[0]);
  return { stores, ports };
}

/** Adds the demo data and writes the settings of `npm run content-server` to a file beside stack.json. */
async function addDemoData(
  owner: string,
  state: State,
  password = state.secrets.contentServerPassword,
): Promise<Credentials> {
  await seed(owner);
  const database = await enableContentServerLogin(owner, password);
  const credentials = { database, clientId: DEMO_CLIENT.name, clientSecret: DEMO_CLIENT.secret };
  writePrivate(state.path(CREDENTIALS_FILE), credentials);
  return credentials;
}
