import type { External } from './config.ts';
import { freePort, isFree } from './ports.ts';
import type { State } from './state.ts';
import type { ProcessSpec } from './supervised.ts';

/** Starts a proxy in front of `port` for a test; resolves with the port of the proxy. */
export type StartProxy = (name: string, port: number) => Promise<number>;

/** Parameters for starting PostgreSQL, Redis and Kafka. */
export interface StackContext {
  state: State;
  /** Servers that the user runs; the launcher does not start them. */
  external: External;
  /** Use the default port of each server if it is free. */
  usualPorts: boolean;
  /** Ports of the services, which start after the stores. */
  reserved?: readonly number[];
  /** Fail without Kafka. */
  needsKafka: boolean;
  /** Puts a proxy in front of each store and service, for a test. Kafka advertises the port of its proxy. */
  proxy?: StartProxy;
  signal: AbortSignal;
  /** Starts a process and keeps it running; resolves when it is ready. */
  up: (spec: ProcessSpec) => Promise<void>;
}

/** The part of the context that the definition of a server's process needs. */
export type ServerContext = Pick<StackContext, 'state' | 'usualPorts' | 'reserved' | 'proxy' | 'signal'>;

/** Returns the port for a server whose default port is `usual`. */
export const portFor = async ({ usualPorts, reserved }: ServerContext, usual: number): Promise<number> =>
  usualPorts && !reserved?.includes(usual) && (await isFree(usual)) ? usual : freePort(reserved);
