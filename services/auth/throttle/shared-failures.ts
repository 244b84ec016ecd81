import {
  createBreaker,
  HttpError,
  type Logger,
  type RedisClient,
  unavailable,
} from '@content-platform/chassis';
import { createMemoryFailures, type FailureCount, type UpdateFailures } from './failures.ts';

/**
 * Writes the new values of KEYS if each key still has the expected value; otherwise returns the time in ms and the
 * values. ARGV for each key: expected value, new value ('' deletes) and time to live in ms. Without ARGV it only reads.
 * With the flag, counting continues while Redis is out of memory.
 */
const compareAndSet = `#!lua flags=allow-oom
local values, same = {}, #ARGV > 0
for i, key in ipairs(KEYS) do
  values[i] = redis.call('GET', key) or ''
  same = same and values[i] == ARGV[3 * i - 2]
end
if not same then
  local time = redis.call('TIME')
  return { time[1] * 1000 + math.floor(time[2] / 1000), unpack(values) }
end
for i, key in ipairs(KEYS) do
  if ARGV[3 * i - 1] == '' then redis.call('UNLINK', key)
  else redis.call('SET', key, ARGV[3 * i - 1], 'PX', ARGV[3 * i]) end
end
`;

type Script = (
  keys: number,
  ...values: (string | number)[]
) => Promise<null | [now: number, ...values: string[]]>;

/** In each round one of the competing writers succeeds. Attempts on one account, or from one network, compete. */
const maxRounds = 100;

/** Counts failures in Redis for all processes. Throws 503 after 100 lost rounds, and the errors of ioredis. */
function createRedisFailures(redis: RedisClient): UpdateFailures {
  redis.defineCommand('compareAndSetFailures', { lua: compareAndSet });
  const client = redis as unknown as { compareAndSetFailures: Script };
  // In a cluster the braces put all keys into one slot, as a script requires. Earlier releases keep hashes in
  // `guesses:account:…`, so both releases can run side by side.
  const prefix = redis.isCluster ? '{guesses}:json:' : 'guesses:json:';

  return async (keys, change) => {
    const names = keys.map((key) => prefix + key);
    let reply = await client.compareAndSetFailures(names.length, ...names);
    for (let round = 0; reply && round < maxRounds; round += 1) {
      const [now, ...values] = reply;
      const current = values.map((value) => (value ? (JSON.parse(value) as FailureCount) : undefined));
      const { states, result } = change(current, now);
      if (!states) return result;
      const writes = states.flatMap((state, index) => {
        const lifetimeMs = (state?.expiresAt ?? now) - now;
        return [values[index]!, lifetimeMs > 0 ? JSON.stringify(state) : '', lifetimeMs];
      });
      reply = await client.compareAndSetFailures(names.length, ...names, ...writes);
      if (!reply) return result;
    }
    throw unavailable('The server is overloaded. Retry later.');
  };
}

/** Counts failures in Redis, or in the memory of this process while Redis is unavailable. */
export function createSharedFailures(redis: RedisClient, logger: Logger): UpdateFailures {
  const updateRedis = createRedisFailures(redis);
  const updateMemory = createMemoryFailures();
  const breaker = createBreaker(logger, 'Redis unavailable; this process counts failed logins in memory');

  return async (keys, change) => {
    if (!breaker.allows()) return updateMemory(keys, change);
    try {
      const result = await updateRedis(keys, change);
      breaker.report(true);
      return result;
    } catch (error) {
      const redisWorks = error instanceof HttpError; // thrown only after 100 lost rounds
      breaker.report(redisWorks, error);
      if (redisWorks) throw error;
      return updateMemory(keys, change);
    }
  };
}
