import { setTimeout as sleep } from 'node:timers/promises';
import { withRedis } from './connections.ts';
import { announce } from './events.ts';
import { database } from './records.ts';
import { pidOf } from './stack.ts';

/** A reversible fault of a stack. The launcher restarts processes that die. */
export interface Fault {
  name: string;
  inject: () => Promise<unknown>;
}

const kill = (name: string, signal: NodeJS.Signals): Fault => ({
  name: `${name}: ${signal}`,
  inject: async () => void process.kill(pidOf(name), signal),
});

const pause = (name: string, seconds: number): Fault => ({
  name: `${name} stands still for ${seconds} s`,
  async inject() {
    const pid = pidOf(name);
    process.kill(pid, 'SIGSTOP');
    await sleep(seconds * 1_000).finally(() => process.kill(pid, 'SIGCONT'));
  },
});

const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()`;

/** Faults of the dependencies, which the services must survive. */
export const faultsAround: Fault[] = [
  pause('redis', 5),
  kill('kafka', 'SIGKILL'),
  kill('redis', 'SIGKILL'),
  { name: 'PostgreSQL ends every connection', inject: async () => void (await database().query(terminate)) },
  pause('kafka', 20),
  { name: 'the cache is emptied', inject: () => withRedis((redis) => redis.flushall()) },
  kill('postgres', 'SIGQUIT'),
  { name: 'Redis forgets its scripts', inject: () => withRedis((redis) => redis.script('FLUSH')) },
  { name: 'a poison event', inject: async () => void (await announce('not json')) },
  {
    name: 'Redis ends every connection',
    inject: () => withRedis((redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'normal')),
  },
];

export const faultsWithin: Fault[] = [
  kill('content-cache', 'SIGKILL'),
  kill('auth', 'SIGKILL'),
  pause('content-cache', 3),
  kill('letters', 'SIGKILL'),
  kill('content-cache', 'SIGTERM'),
  kill('devices', 'SIGTERM'),
  pause('auth', 5),
  kill('gateway', 'SIGTERM'),
  kill('media-upload', 'SIGKILL'),
  kill('pulse', 'SIGKILL'),
];
