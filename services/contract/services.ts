/** A store that a process may need. Every process can also write to the logs database. */
export type Store = 'postgres' | 'redis' | 'kafka';

interface Description {
  name: string;
  /** Port of the public listener; the internal listener (health, metrics) is `internalPortOffset` above it. */
  port: number;
  /** Memory limit of a container in MB. */
  memoryMb: number;
  /** Seconds between the stop signal and the kill: the longest reply that may be under way. */
  stopSeconds: number;
  stores: readonly Store[];
  /** Other services whose public listener this process calls; every service also calls auth. */
  calls?: 'all' | readonly string[];
  /** Other services whose internal listener this process calls. */
  callsInternal?: 'all' | readonly string[];
  /** PostgreSQL connections that one process opens at most. */
  connections: { platform: number; logs: number };
  /** The state is in the memory of the process, so exactly one process runs. */
  isSingle?: true;
  /** Tag of the endpoints in the OpenAPI document. */
  tag: string;
  /** What the service is for, as a sentence. */
  description: string;
}

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
    // An upload of the service behind it may take as long.
    stopSeconds: 80,
    stores: ['redis'],
    calls: 'all',
    connections: { platform: 0, logs: 1 },
    tag: 'Platform',
    description: 'Health and documentation.',
  },
  {
    ...usual,
    name: 'auth',
    port: 8081,
    // A password hash takes 19 MB, several are computed at once, and admin commands run in the same container.
    memoryMb: 384,
    stores: ['postgres', 'redis'],
    callsInternal: ['devices'],
    connections: { platform: 12, logs: 1 },
    tag: 'Accounts',
    description: 'Logging in and tokens.',
  },
  {
    ...usual,
    name: 'content-cache',
    port: 8082,
    stores: ['postgres', 'redis', 'kafka'],
    connections: { platform: 15, logs: 1 },
    tag: 'Content',
    description: 'Records, the clearing of their cache, failed jobs.',
  },
  {
    ...usual,
    name: 'media-upload',
    port: 8083,
    memoryMb: 700,
    // An upload that has begun may take as long.
    stopSeconds: 80,
    tag: 'Media',
    description: 'Uploaded files and their variants.',
  },
  {
    ...usual,
    name: 'devices',
    port: 8084,
    tag: 'Devices',
    description: 'Phones and browsers that get push messages.',
  },
  {
    ...usual,
    name: 'letters',
    port: 8085,
    tag: 'Letters',
    description: 'Letters and the webforms they ask for.',
  },
  {
    ...usual,
    name: 'pulse',
    port: 8086,
    stores: [],
    calls: ['content-cache'],
    callsInternal: 'all',
    connections: { platform: 0, logs: 3 },
    isSingle: true,
    tag: 'Pulse',
    description: 'The targets at a glance.',
  },
] as const satisfies readonly Description[];

export type ServiceName = (typeof list)[number]['name'];

/** One process of the platform. */
export interface Service extends Description {
  name: ServiceName;
  calls?: 'all' | readonly ServiceName[];
  callsInternal?: 'all' | readonly ServiceName[];
}

/** Every process of the platform. Settings, manifests and documents are derived from this list or compared with it. */
export const services: readonly Service[] = list;

/** How far the internal listener (health, metrics) is above the public one. */
export const internalPortOffset = 1000;

/** The service of this name. */
export function serviceOf(name: ServiceName): Service {
  return services.find((service) => service.name === name)!;
}

/** The port of a service's public listener. */
export function portOf(name: ServiceName): number {
  return serviceOf(name).port;
}

/** The services whose public listener a service calls, auth included. */
export function callsOf({ name, calls = [] }: Service): ServiceName[] {
  const called = calls === 'all' ? services.map((other) => other.name) : ['auth' as const, ...calls];
  return called.filter((other) => other !== name);
}

type Upper<N extends string> = N extends `${infer Head}-${infer Tail}`
  ? `${Uppercase<Head>}_${Upper<Tail>}`
  : Uppercase<N>;
const upper = <N extends string>(name: N) => name.toUpperCase().replaceAll('-', '_') as Upper<N>;

/** The setting that holds the address of a service's public listener: `CONTENT_CACHE_URL`. */
export const urlVariable = <N extends ServiceName>(name: N) => `${upper(name)}_URL` as const;
/** The setting that holds the address of a service's internal listener: `DEVICES_INTERNAL_URL`. */
export const internalUrlVariable = <N extends ServiceName>(name: N) => `${upper(name)}_INTERNAL_URL` as const;

/**
 * The settings that tell a process the addresses of the services it calls.
 * @param urlOf returns the address of a service's listener
 */
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
