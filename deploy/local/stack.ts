import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type External, ROOT } from './config.ts';
import type { Credentials, Settings } from './content-server/settings.ts';
import { ensureDatabases } from './databases.ts';
import { externalKafka, prepareKafka } from './kafka.ts';
import { readableLine } from './log-view.ts';
import { HOST, INTERNAL_OFFSET, isFree } from './ports.ts';
import { preparePostgres } from './postgres.ts';
import { Problem, Stopped } from './problem.ts';
import { externalRedis, prepareRedis } from './redis.ts';
import { seed } from './seed.ts';
import { type Service, SERVICES } from './services.ts';
import type { Stack } from './stack-file.ts';
import { openState, type State, stopRecorded, writePrivate } from './state.ts';
import { type ProcessSpec, Supervised } from './supervised.ts';
import type { Terminal } from './terminal.ts';

export type StackOptions = {
  /** The folder that holds everything of this stack. */
  state: string;
  gatewayPort: number;
  /** Take PostgreSQL's, Redis's and Kafka's usual ports where they are free. */
  usualPorts: boolean;
  external: External;
  /** No Kafka is a failure. */
  needsKafka: boolean;
  /** Show the services' logs on the terminal; they are in the state folder anyway. */
  showLogs: boolean;
  terminal: Terminal;
  /** Stops the start, and says that the stack is to end; its reason is a Stopped. */
  signal: AbortSignal;
};

export type RunningStack = {
  stack: Stack;
  /** What the demo's content server is told. */
  contentServer: Settings;
  /** Writes stack.json, and again whenever a process was restarted; from now on the terminal shows the logs. */
  publish: () => void;
  /** Resolves when the stack has to end: with a Problem, or with Stopped. */
  ended: Promise<unknown>;
  /** Stops every process, the ones that use others first; resolves when all are gone. */
  stop: () => Promise<void>;
};

/** So that three tiers, one after the other, end within 10 s. */
const GRACE_MS = 3_000;
const ORPHAN_GRACE_MS = 5_000;
const READY_WITHIN_MS = 60_000;
/** Node's own warnings that say nothing about the platform. */
const NODE_FLAGS = ['--disable-warning=ExperimentalWarning', '--disable-warning=TimeoutNegativeWarning'];

/**
 * Brings up PostgreSQL, Redis, Kafka, every service and the demo data.
 * @throws Problem when something cannot be had, Stopped when `signal` says so; nothing is left running then
 */
export const startStack = async (options: StackOptions): Promise<RunningStack> => {
  const state = openState(options.state, addressOf(options.gatewayPort));
  const run = new StackRun(options, state);
  try {
    await run.start();
    return run;
  } catch (error) {
    await run.stop();
    throw error;
  }
};

const addressOf = (port: number): string => `http://${HOST}:${port}`;

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
  #credentials: Credentials | undefined;
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
    const [databases, redis, kafka] = await this.#together([this.#postgres(), this.#redis(), this.#kafka()]);
    this.#addresses = { postgres: databases.platform, logs: databases.logs, redis, kafka };
    await this.#together(SERVICES.map((service) => this.#service(service)));
    this.#credentials = await this.#step('demo data', () => seed(databases.platform, this.#state));
  }

  get contentServer(): Settings {
    if (!this.#credentials) throw new Error('the stack is not up');
    return { ...this.#credentials, gateway: this.stack.gateway, kafka: this.stack.kafka };
  }

  get stack(): Stack {
    if (!this.#addresses) throw new Error('the stack is not up');
    const processes = [...this.#tiers.gateway, ...this.#tiers.services];
    const services = SERVICES.map(({ name, offset }) => {
      const port = this.#options.gatewayPort + offset;
      const pid = processes.find(({ spec }) => spec.name === name)?.pid ?? 0;
      return [name, { public: addressOf(port), internal: addressOf(port + INTERNAL_OFFSET), pid }] as const;
    });
    return {
      gateway: addressOf(this.#options.gatewayPort),
      ...this.#addresses,
      services: Object.fromEntries(services),
    };
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
    return this.#options.terminal.step(name, (tell) =>
      work(tell).catch((error: unknown) => {
        throw this.#end.signal.aborted ? this.#end.signal.reason : error;
      }),
    );
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
    for (const { name, offset } of SERVICES)
      for (const port of [offset, offset + INTERNAL_OFFSET].map(
        (distance) => this.#options.gatewayPort + distance,
      ))
        if (!(await isFree(port)))
          throw new Problem(
            `Port ${port}, which ${name} needs, is taken: stop what listens there, or move the stack with GATEWAY_PORT=9080 npm start.`,
          );
  }

  #usual(port: number): number | undefined {
    return this.#options.usualPorts ? port : undefined;
  }

  #postgres(): ReturnType<typeof ensureDatabases> {
    return this.#step('PostgreSQL', async (tell) => {
      let url = this.#options.external.databaseUrl;
      if (!url) {
        const prepared = await preparePostgres(this.#state, this.#usual(5432), this.#end.signal);
        await this.#up('stores', prepared.spec);
        ({ url } = prepared);
      }
      const databases = await ensureDatabases(url);
      tell(`${databases.version} at ${new URL(url).host}`);
      return databases;
    });
  }

  #redis(): Promise<string> {
    return this.#step('Redis', async (tell) => {
      const { redisUrl } = this.#options.external;
      if (redisUrl) {
        tell(`${await externalRedis(redisUrl)} at ${new URL(redisUrl).host}`);
        return redisUrl;
      }
      const { spec, url } = await prepareRedis(this.#state, this.#usual(6379), this.#end.signal, tell);
      await this.#up('stores', spec);
      tell(`at ${new URL(url).host}`);
      return url;
    });
  }

  #kafka(): Promise<string | null> {
    return this.#step('Kafka', async (tell) => {
      const { external, needsKafka } = this.#options;
      if (external.kafkaBrokers) {
        await externalKafka(external.kafkaBrokers);
        tell(`at ${external.kafkaBrokers}`);
        return external.kafkaBrokers;
      }
      const prepared = await prepareKafka(this.#state, this.#usual(9092), this.#end.signal, tell);
      if (typeof prepared === 'string') {
        if (needsKafka)
          throw new Problem(
            `There is no Kafka: ${prepared}. Install Java 17 and Maven, or set KAFKA_BROKERS.`,
          );
        tell(
          `not to be had (${prepared}): invalidation by HTTP only. Java 17 with Maven, Docker or KAFKA_BROKERS bring it.`,
        );
        return null;
      }
      await this.#up('stores', prepared.spec);
      tell(`${prepared.version} at ${prepared.brokers}`);
      return prepared.brokers;
    });
  }

  #service({ name, main, offset, environment }: Service): Promise<void> {
    const { gatewayPort } = this.#options;
    const port = gatewayPort + offset;
    const { postgres = '', logs = '', redis = '', kafka = null } = this.#addresses ?? {};
    const urls = Object.fromEntries(
      SERVICES.map((service) => [service.name, addressOf(gatewayPort + service.offset)]),
    );
    const around = { postgres, logs, redis, kafka: kafka ?? '', urls, secrets: this.#state.secrets };
    const env = {
      HOST,
      PORT: String(port),
      PUBLIC_URL: addressOf(gatewayPort),
      LOGS_DATABASE_URL: logs,
      AUTH_URL: urls.auth ?? '',
      ...environment(around),
    };
    const ready = async (): Promise<void> => {
      const url = `${addressOf(port + INTERNAL_OFFSET)}/health/ready`;
      const reply = await fetch(url, { signal: AbortSignal.timeout(1_000) });
      await reply.body?.cancel();
      if (reply.status !== 200) throw new Error('not ready');
    };
    const spec: ProcessSpec = {
      name,
      command: process.execPath,
      args: [...NODE_FLAGS, join(ROOT, main)],
      cwd: ROOT,
      env,
      ready,
      readyWithinMs: READY_WITHIN_MS,
      stopSignal: 'SIGTERM',
      onLine: (line) => this.#show(name, line),
    };
    return this.#step(name, async (tell) => {
      await this.#up(name === 'gateway' ? 'gateway' : 'services', spec);
      tell(`at ${addressOf(port)}`);
    });
  }

  /** Until the stack is ready the terminal belongs to the steps: warnings and worse alone are shown. */
  #show(name: string, line: string): void {
    const { level, text } = readableLine(name, line);
    if (!this.#options.showLogs) return;
    if (this.#published || ['warn', 'error', 'fatal'].includes(level)) this.#options.terminal.line(text);
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
