/** A store that a process may need. In addition, every process writes to the logs database. */
export type Store = 'postgres' | 'redis' | 'kafka';

/** The schema of a service in the platform's database. No other service has rights on it. */
export interface Schema {
  name: string;
  /** The schema has the table idempotency_key of the chassis. */
  idempotency?: true;
  /** Rights on single tables with their partitions, and views. Default: to read and write tables, and to read views. */
  rights?: Readonly<Record<string, string>>;
  functions?: readonly string[];
}

interface Description<Name extends string> {
  name: Name;
  /** Port of the public listener; the internal listener (health, metrics) is `internalPortOffset` above it. */
  port: number;
  /** Memory limit of the container, from the measured peak: docs/operations/scaling.md, "Memory of a process". */
  memoryMb: number;
  /** Grace period in seconds between SIGTERM and SIGKILL. It must fit the longest request in flight. */
  stopSeconds: number;
  stores: readonly Store[];
  schema?: Schema;
  /** ACL rules of the service's Redis user: its keys and commands. */
  redis?: string;
  /** Reads the slow log; every process writes it. */
  readsSlowLog?: true;
  /** Other services whose public listener this process calls; every service also calls auth. */
  calls?: 'all' | readonly Name[];
  /** Services whose internal listener this process calls; every process also calls auth's. */
  callsInternal?: 'all' | readonly Name[];
  /** The service has a secret with which auth gives it tokens for internal listeners. */
  hasSecret?: true;
  /** Stores data of users, and erases it when auth has deleted the user. */
  erasesUsers?: true;
  /** Field of `GET /api/me/export` with the user's data, which auth gets from the service's internal listener. */
  exportsAs?: string;
  /** Maximum number of connections of a process to each PostgreSQL database. */
  connections: { platform: number; logs: number };
  /** Exactly one process runs, because its state is in memory. */
  isSingle?: true;
  tag: string;
  description: string;
}

/** Commands of every Redis user: connecting, health checks, and finding the nodes of a cluster. */
const redisCommands =
  'resetchannels -@all +@connection -@admin -@dangerous +info +cluster|slots +cluster|shards +cluster|info';

const usual = {
  memoryMb: 256,
  stopSeconds: 15,
  stores: ['postgres'],
  connections: { platform: 10, logs: 1 },
} as const;

const list = [
  {
    ...usual,
    name: 'gateway',
    port: 8080,
    memoryMb: 512,
    // An upload that media-upload processes may take this long.
    stopSeconds: 80,
    stores: ['redis'],
    redis: `~rate:* ${redisCommands} +eval +evalsha +set +incrby +pttl +expire`,
    calls: 'all',
    connections: { platform: 0, logs: 1 },
    tag: 'Platform',
    description: 'Health and documentation.',
  },
  {
    ...usual,
    name: 'auth',
    port: 8081,
    // A password hash takes 19 MB, several run in parallel, and admin commands of 75 MB run in the same container.
    memoryMb: 512,
    stores: ['postgres', 'redis'],
    // In a cluster the keys begin with {guesses}, so that all are in one slot.
    redis: `~guesses:* ~{guesses}:* ${redisCommands} +eval +evalsha +time +get +set +unlink`,
    connections: { platform: 12, logs: 2 },
    schema: { name: 'auth', rights: { audit: 'SELECT, INSERT', deleted_user: 'SELECT, DELETE' } },
    tag: 'Accounts',
    description: 'Login, sessions, tokens and user administration.',
  },
  {
    ...usual,
    name: 'content-cache',
    port: 8082,
    memoryMb: 768,
    stores: ['postgres', 'redis', 'kafka'],
    redis: `~webform:* ~pathway:* ~accesscode:* ~condition:* ${redisCommands} +eval +evalsha +time +hmget +hset +hdel +pttl +pexpire +unlink +scan +cluster|nodes`,
    connections: { platform: 15, logs: 1 },
    hasSecret: true,
    erasesUsers: true,
    schema: {
      name: 'content',
      rights: { record: 'SELECT', tombstone: 'SELECT, UPDATE, DELETE', change_epoch: 'SELECT, UPDATE' },
      functions: ['origin', 'start_change_epoch'],
    },
    tag: 'Content',
    description: 'Content records, cache clears and failed jobs.',
  },
  {
    ...usual,
    name: 'media-upload',
    port: 8083,
    memoryMb: 700,
    // An upload in progress may take this long.
    stopSeconds: 80,
    hasSecret: true,
    erasesUsers: true,
    exportsAs: 'files',
    schema: { name: 'media', idempotency: true },
    tag: 'Media',
    description: 'Uploaded files and their variants.',
  },
  {
    ...usual,
    name: 'devices',
    port: 8084,
    memoryMb: 384,
    hasSecret: true,
    erasesUsers: true,
    exportsAs: 'devices',
    schema: { name: 'devices' },
    tag: 'Devices',
    description: 'Phones and browsers that receive push messages.',
  },
  {
    ...usual,
    name: 'letters',
    port: 8085,
    hasSecret: true,
    erasesUsers: true,
    exportsAs: 'letters',
    schema: { name: 'letters', idempotency: true },
    tag: 'Letters',
    description: 'Letters and their webforms.',
  },
  {
    ...usual,
    name: 'pulse',
    port: 8086,
    stores: [],
    readsSlowLog: true,
    calls: ['content-cache'],
    callsInternal: 'all',
    connections: { platform: 0, logs: 3 },
    isSingle: true,
    tag: 'Pulse',
    description: 'State of the operating targets.',
  },
] as const satisfies readonly Description<string>[];

export type ServiceName = (typeof list)[number]['name'];

export type Service = Description<ServiceName>;

/** The services from which auth gets data for an export. */
export const exporters = list.filter((service) => 'exportsAs' in service);

/** Every process of the platform. Settings, manifests and documents are derived from this list or compared with it. */
export const services: readonly Service[] = list.map((service) =>
  service.name === 'auth' ? { ...service, callsInternal: exporters.map(({ name }) => name) } : service,
);

/** Offset from the public port to the port of the internal listener (health, metrics). */
export const internalPortOffset = 1000;

export const serviceOf = (name: ServiceName): Service => services.find((service) => service.name === name)!;

export const portOf = (name: ServiceName): number => serviceOf(name).port;

/** Returns the services whose public listener a service calls, including auth. */
export function callsOf({ name, calls = [] }: Service): ServiceName[] {
  const called = calls === 'all' ? services.map((other) => other.name) : ['auth' as const, ...calls];
  return called.filter((other) => other !== name);
}

type Upper<N extends string> = N extends `${infer Head}-${infer Tail}`
  ? `${Uppercase<Head>}_${Upper<Tail>}`
  : Uppercase<N>;
const upper = <N extends string>(name: N) => name.toUpperCase().replaceAll('-', '_') as Upper<N>;

/** Returns the name of the setting with the URL of a service's public listener, for example `CONTENT_CACHE_URL`. */
export const urlVariable = <N extends ServiceName>(name: N) => `${upper(name)}_URL` as const;
/** Returns the name of the setting with the URL of a service's internal listener, for example `DEVICES_INTERNAL_URL`. */
export const internalUrlVariable = <N extends ServiceName>(name: N) => `${upper(name)}_INTERNAL_URL` as const;

/** Returns the settings with the URLs of the services that a process calls; `urlOf` returns a listener's URL. */
export function addressSettings(
  service: Service,
  urlOf: (name: ServiceName, listener: 'public' | 'internal') => string,
): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const name of callsOf(service)) settings[urlVariable(name)] = urlOf(name, 'public');
  if (service.name !== 'auth') settings[internalUrlVariable('auth')] = urlOf('auth', 'internal');
  const { callsInternal = [] } = service;
  if (callsInternal === 'all')
    settings['INTERNAL_URLS'] = services.map(({ name }) => urlOf(name, 'internal')).join(',');
  else for (const name of callsInternal) settings[internalUrlVariable(name)] = urlOf(name, 'internal');
  return settings;
}
