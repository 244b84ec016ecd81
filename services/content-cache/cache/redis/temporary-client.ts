import type { HostPort, RedisAccess } from '@content-platform/chassis';
import { Redis } from 'ioredis';
import { withDeadline } from './node.ts';
import { clientSettings } from './primary.ts';

/** Limit for connecting and for `work`, together. */
const timeoutMs = 400;

/** Runs `work` over a new connection to `server`, then closes it. @throws Error with the server's address and the cause */
export async function withTemporaryClient<T>(
  server: HostPort & RedisAccess,
  work: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ ...clientSettings, ...server });
  let socketError: Error | undefined;
  client.on('error', (error: Error) => (socketError = error));
  try {
    return await withDeadline(
      client.connect().then(() => work(client)),
      timeoutMs,
    );
  } catch (error) {
    const { message } = socketError ?? (error as Error);
    throw new Error(`${server.host}:${server.port}: ${message}`, { cause: error });
  } finally {
    client.stream?.destroy();
  }
}
