import { docker } from '../compose/docker.ts';

/** redis-cli in a container, to the server in there; the password is in its environment. */
export const redisCli = (container: string, ...args: string[]): Promise<string> =>
  docker(['exec', container, 'redis-cli', ...args]);

/** What INFO replication says under a name. */
export async function replicationOf(container: string, name: string): Promise<string | undefined> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await redisCli(container, 'info', 'replication'))?.[1];
}

/** Whether it follows a primary, and has all that this one has. */
export async function isReplica(container: string): Promise<boolean> {
  return (await replicationOf(container, 'master_link_status')) === 'up';
}

export async function keysOf(container: string, pattern: string): Promise<string[]> {
  return (await redisCli(container, '--scan', '--pattern', pattern)).split('\n').filter(Boolean);
}

/** A server's address in the network of the stores. */
export const addressOf = (container: string): Promise<string> =>
  docker(['inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', container]);
