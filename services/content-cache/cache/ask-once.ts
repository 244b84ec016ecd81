import type { HostPort, RedisAccess } from '@content-platform/chassis';
import { Redis } from 'ioredis';

import { withDeadline } from './deadline.ts';
import { clientSettings } from './primary.ts';

/** How long a server may take to answer, in milliseconds, connecting included. */
const ANSWER_MS = 400;

/** Asks a server something over a connection of its own. @throws Error that names the server, and why it said nothing */
export async function askOnce<T>(
  server: HostPort & RedisAccess,
  question: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ ...clientSettings, ...server });
  let socketError: Error | undefined;
  client.on('error', (error: Error) => (socketError = error));
  try {
    return await withDeadline(
      client.connect().then(() => question(client)),
      ANSWER_MS,
    );
  } catch (error) {
    const { message } = socketError ?? (error as Error);
    throw new Error(`${server.host}:${server.port}: ${message}`, { cause: error });
  } finally {
    client.stream?.destroy();
  }
}
