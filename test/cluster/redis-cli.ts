import { docker } from '../compose/docker.ts';

/** Runs redis-cli in a container; its environment contains the password. */
export const redisCli = (container: string, ...args: string[]): Promise<string> =>
  docker(['exec', container, 'redis-cli', ...args]);

/** Returns a field of INFO replication. */
export async function replicationOf(container: string, name: string): Promise<string | undefined> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await redisCli(container, 'info', 'replication'))?.[1];
}

/** Returns whether the server is a replica in sync with its primary. */
export async function isReplica(container: string): Promise<boolean> {
  return (await replicationOf(container, 'master_link_status')) === 'up';
}

export async function keysOf(container: string, pattern: string): Promise<string[]> {
  return (await redisCli(container, '--scan', '--pattern', pattern)).split('\n').filter(Boolean);
}

/** Returns a container's IP address in the network of the stores. */
export const addressOf = (container: string): Promise<string> =>
  docker(['inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', container]);
