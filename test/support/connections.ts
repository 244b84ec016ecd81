import { Redis } from 'ioredis';
import pg from 'pg';
import { stack } from './stack.ts';

/** Connects to the database at `url`, does `work`, and ends the connection. */
export async function withDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  return work(client).finally(() => client.end());
}

/** Connects to the stack's Redis, does `work`, and disconnects. */
export async function withRedis<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(stack().redis);
  return work(redis).finally(() => redis.disconnect());
}
