import { Redis } from 'ioredis';
import pg from 'pg';
import { stack } from './stack.ts';

/** Connects to the database at a URL, does `work`, and ends the connection. */
export async function withDatabase<T>(to: string | pg.ClientConfig, work: (client: pg.Client) => Promise<T>) {
  const client = new pg.Client(to);
  client.on('error', () => undefined); // queries report it
  await client.connect();
  return work(client).finally(() => client.end());
}

/** Connects to the stack's Redis, does `work`, and disconnects. */
export async function withRedis<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(stack().redis);
  return work(redis).finally(() => redis.disconnect());
}
