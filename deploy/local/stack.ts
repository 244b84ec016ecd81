import { rmSync } from 'node:fs';
import type { External } from './config.ts';
import { CREDENTIALS_FILE, type Credentials, type Settings } from './content-server/settings.ts';
import { DEMO_CLIENT } from './demo-accounts.ts';
import { prepareIdentityDemo } from './identity-demo/demo.ts';
import { readableLine } from './log-view.ts';
import { isFree } from './ports.ts';
import { Problem, Stopped } from './problem.ts';
import { admitContentServer, refuseDemoDataElsewhere, seed } from './seed.ts';
import { addressesOf, portsOf, serviceSpec } from './service-process.ts';
import { type Service, SERVICES } from './services.ts';
import type { Stack } from './stack-file.ts';
import { openState, type State, stopRecorded, writePrivate } from './state.ts';
import { type Front, type Ground, startKafka, startPostgres, startRedis } from './stores.ts';
import { type ProcessSpec, Supervised } from './supervised.ts';
import type { Terminal } from './terminal.ts';

export interface StackOptions {
  /** The folder that holds everything of this stack. */
  state: string;
  gatewayPort: number;
  /** Take PostgreSQL's, Redis's and Kafka's usual ports where they are free. */
  usualPorts: boolean;
  external: External;
  /** Networks whose X-Forwarded-For the gateway believes: a test plays many clients. */
  trustedProxies?: string;
  /** Who stands between the processes and what they ask: the stores and each other. Nobody without it. */
  front?: Front;
  /** Bring up an identity service for trials, and have people log in there. */
  identityDemo?: boolean;
  /** No Kafka is a failure. */
  needsKafka: boolean;
  /** Show the services' logs on the terminal; they are in the state folder anyway. */
  showLogs: boolean;
  terminal: Terminal;
  /** Stops the start, and says that the stack is to end; its reason is a Stopped. */
  signal: AbortSignal;
}

export interface RunningStack {
  stack: Stack;
  /** What the demo's content server is told. */
  contentServer: Settings;
  /** Writes stack.json, and again whenever a process was restarted; from now on the terminal shows the logs. */
  publish: () => void;
  /** Resolves when the stack has to end: with a Problem, or with Stopped. */
  ended: Promise<unknown>;
  /** Stops every process, the ones that use others first; resolves when all are gone. */
  stop: () => Promise<void>;
}

/** So that three tiers, one after the other, end within 10 s. */
const GRACE_MS = 3_000;
const ORPHAN_GRACE_MS = 5_000;

/**
 * Brings up PostgreSQL, Redis, Kafka, every service and the demo data.
 * @throws Problem when something cannot be had, Stopped when `signal` says so; nothing is left running then
 */
export async function startStack(options: StackOptions): Promise<RunningStack> {
  if (options.external.databaseUrl) refuseDemoDataElsewhere(options.external.databaseUrl);
  const state = openState(options.state, addressesOf(options.gatewayPort, () => 0).gateway);
  const run = new StackRun(options, state);
  try {
    await run.start();
    return run;
  } catch (error) {
    await run.stop();
    throw error;
  }
}

class StackRun implements RunningStack {
  readonly ended: Promise<unknown>;
  readonly #options: StackOptions;
  readonly #state: State;
  readonly #end = new AbortController();
  /** In the order in which they are stopped. */
  readonly #tiers: { gateway: Supervised[]; services: Supervised[]; stores: Supervised[] } = {
    gateway: [],
    services: [],
    stores: [],
  };
  #addresses: Omit<Stack, 'gateway' | 'services'> | undefined;
  /** What the processes are told in the place of these, and of each other's ports. */
  #told: { stores: Partial<Stack>; ports: Record<string, number> } = { stores: {}, ports: {} };
  #credentials: Credentials | undefined;
  /** What auth is told of the identity service. */
  #identity: Record<string, string> | undefined;
  #published = false;

  constructor(options: StackOptions, state: State) {
    this.#options = options;
    this.#state = state;
    const { signal } = this.#end;
    this.ended = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
    options.signal.addEventListener('abort', () => this.#end.abort(options.signal.reason));
    if (options.signal.aborted) this.#end.abort(options.signal.reason);
  }

  async start(): Promise<void> {
    rmSync(this.#stackFile, { force: true });
    await this.#stopOrphans();
    await this.#refuseTakenPorts();
    const ground: Ground = {
      ...this.#options,
      state: this.#state,
      signal: this.#end.signal,
      up: (spec) => this.#up('stores', spec),
    };
    const [databases, redis, kafka] = await this.#together([
      this.#step('PostgreSQL', (tell) => startPostgres(ground, tell)),
      this.#step('Redis', (tell) => startRedis(ground, tell)),
      this.#step('Kafka', (tell) => startKafka(ground, tell)),
    ]);
    this.#addresses = { postgres: databases.platform, logs: databases.logs, redis, kafka };
    await this.#askFronts(this.#addresses);
    if (this.#options.identityDemo) await this.#startIdentityDemo();
    await this.#together(SERVICES.map((service) => this.#service(service)));
    await this.#step('demo data', async () => {
      await seed(databases.platform);
      this.#credentials = await this.#admitContentServer(databases.platform);
    });
  }

  /** What `npm run content-server` needs is in a file beside stack.json. */
  async #admitContentServer(owner: string): Promise<Credentials> {
    const database = await admitContentServer(owner, this.#state.secrets.contentServerPassword);
    const credentials = { database, clientId: DEMO_CLIENT.name, clientSecret: DEMO_CLIENT.secret };
    writePrivate(this.#state.path(CREDENTIALS_FILE), credentials);
    return credentials;
  }

  get contentServer(): Settings {
    if (!this.#credentials) throw new Error('the stack is not up');
    return { ...this.#credentials, gateway: this.stack.gateway, kafka: this.stack.kafka };
  }

  get stack(): Stack {
    if (!this.#addresses) throw new Error('the stack is not up');
    const { gateway, services } = addressesOf(this.#options.gatewayPort, (name) => this.#pidOf(name));
    return { gateway, ...this.#addresses, services };
  }

  #pidOf(name: string): number {
    const processes = [...this.#tiers.gateway, ...this.#tiers.services];
    return processes.find(({ spec }) => spec.name === name)?.pid ?? 0;
  }

  publish(): void {
    this.#published = true;
    writePrivate(this.#stackFile, this.stack);
  }

  async stop(): Promise<void> {
    this.#end.abort(new Stopped());
    rmSync(this.#stackFile, { force: true });
    for (const tier of [this.#tiers.gateway, this.#tiers.services, this.#tiers.stores])
      await Promise.all(tier.map((process) => process.stop(GRACE_MS)));
    this.#state.release();
  }

  get #stackFile(): string {
    return this.#state.path('stack.json');
  }

  /** All at once; when one fails, the others are ended and waited for, so that nothing starts after a stop. */
  async #together<T extends readonly unknown[]>(works: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
    try {
      return (await Promise.all(works)) as unknown as T;
    } catch (error) {
      this.#end.abort(error);
      await Promise.allSettled(works);
      throw this.#end.signal.reason;
    }
  }

  /** A step whose failure is the reason of the end, if there is an end, rather than what came of that. */
  #step<T>(name: string, work: (tell: (detail: string) => void) => Promise<T>): Promise<T> {
    const { signal } = this.#end;
    const reported = (tell: (detail: string) => void): Promise<T> =>
      work(tell).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : error;
      });
    return this.#options.terminal.step(name, reported, signal);
  }

  async #stopOrphans(): Promise<void> {
    const orphans = this.#state.orphans();
    if (orphans.length === 0) return;
    await this.#step('tidying up', async (tell) => {
      await stopRecorded(orphans, ORPHAN_GRACE_MS);
      tell(`stopped ${orphans.length} processes that a killed run had left`);
    });
  }

  async #refuseTakenPorts(): Promise<void> {
    for (const service of SERVICES)
      for (const port of portsOf(service, this.#options.gatewayPort))
        if (!(await isFree(port)))
          throw new Problem(
            `Port ${port}, which ${service.name} needs, is taken: stop what listens there, or move the stack with GATEWAY_PORT=9580 npm start.`,
          );
  }

  #startIdentityDemo(): Promise<void> {
    return this.#step('identity service', async (tell) => {
      const { issuer, spec, environment } = await prepareIdentityDemo(this.#options.gatewayPort);
      await this.#up('services', spec);
      this.#identity = environment;
      tell(`at ${issuer}`);
    });
  }

  async #askFronts({ postgres, logs, redis }: Omit<Stack, 'gateway' | 'services'>): Promise<void> {
    const { front, gatewayPort } = this.#options;
    if (!front) return;
    const stores: Record<string, string> = {};
    for (const [name, address] of Object.entries({ postgres, logs, redis })) {
      const url = new URL(address);
      url.port = String(await front(name, Number(url.port)));
      stores[name] = url.href;
    }
    const ports: Record<string, number> = {};
    for (const service of SERVICES)
      if (service.name !== 'gateway')
        ports[service.name] = await front(service.name, portsOf(service, gatewayPort)[0]);
    this.#told = { stores, ports };
  }

  #service(service: Service): Promise<void> {
    const {
      postgres = '',
      logs = '',
      redis = '',
      kafka = null,
    } = { ...this.#addresses, ...this.#told.stores };
    const stores = {
      postgres,
      logs,
      redis,
      kafka: kafka ?? '',
      trustedProxies: this.#options.trustedProxies,
      identity: this.#identity,
      media: this.#state.path('media'),
      secretsFile: this.#state.path('secrets.json'),
    };
    const spec = serviceSpec(service, this.#options.gatewayPort, stores, this.#told.ports);
    const { name } = service;
    return this.#step(name, async (tell) => {
      const tier = name === 'gateway' ? 'gateway' : 'services';
      await this.#up(tier, { ...spec, onLine: (line) => this.#show(name, line) });
      tell(`at ${this.stack.services[name]?.public}`);
    });
  }

  /**
   * Until the stack is ready the terminal belongs to the steps, and only errors are shown: warnings are usual then,
   * as when Kafka makes its own topics.
   */
  #show(name: string, line: string): void {
    const { level, text } = readableLine(name, line);
    if (!this.#options.showLogs) return;
    if (this.#published || ['error', 'fatal'].includes(level)) this.#options.terminal.line(text);
  }

  async #up(tier: 'gateway' | 'services' | 'stores', spec: ProcessSpec): Promise<void> {
    this.#end.signal.throwIfAborted();
    const supervised = new Supervised(spec, {
      state: this.#state,
      terminal: this.#options.terminal,
      signal: this.#end.signal,
      onRestart: () => this.#published && this.publish(),
      onGivenUp: (problem) => this.#end.abort(problem),
    });
    this.#tiers[tier].push(supervised);
    await supervised.start();
  }
}
