import { createBreaker, type Logger, type RedisClient } from '@content-platform/chassis';
import { type Backoff, createMemoryCounts, type FailureCounts } from './failure-counts.ts';

/**
 * RESERVE keys; window, shortest, longest, a limit for each key -> wait, then blocked_until and before for each key.
 * The rules are those of the counts in memory; Redis's clock is the one that all processes share. Counting goes on
 * when memory is full, hence the flag.
 */
const RESERVE = `#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window, shortest, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local states, wait = {}, 0
for i, key in ipairs(KEYS) do
  local values = redis.call('HMGET', key, 'failures', 'first', 'blocked_until')
  local state = {
    limit = tonumber(ARGV[3 + i]),
    failures = tonumber(values[1]) or 0,
    first = tonumber(values[2]) or now,
    blocked_until = tonumber(values[3]) or 0
  }
  local last = state.failures < state.limit and state.first or state.blocked_until
  if now >= last + window then state.failures, state.first, state.blocked_until = 0, now, 0 end
  wait = math.max(wait, state.blocked_until - now)
  states[i] = state
end
if wait > 0 then return { wait } end

local reply = { 0 }
for i, key in ipairs(KEYS) do
  local state = states[i]
  local over, blocked_until, last = state.failures + 1 - state.limit, 0, state.first
  if over >= 0 then
    blocked_until = now + math.min(shortest * 2 ^ over, longest)
    last = blocked_until
  end
  redis.call('HSET', key, 'failures', state.failures + 1, 'first', state.first, 'blocked_until', blocked_until)
  redis.call('PEXPIRE', key, last + window - now)
  reply[#reply + 1] = blocked_until
  reply[#reply + 1] = state.blocked_until
end
return reply
`;

/** GIVE_BACK keys; blocked_until and before for each key. */
const GIVE_BACK = `#!lua flags=allow-oom
for i, key in ipairs(KEYS) do
  local failures = redis.call('HINCRBY', key, 'failures', -1)
  if redis.call('HGET', key, 'blocked_until') == ARGV[2 * i - 1] then
    redis.call('HSET', key, 'blocked_until', ARGV[2 * i])
  end
  -- Also what was forgotten meanwhile.
  if failures <= 0 then redis.call('UNLINK', key) end
end
`;

interface Commands {
  reserveFailures(keys: number, ...values: (string | number)[]): Promise<[number, ...number[]]>;
  giveBackFailures(keys: number, ...values: (string | number)[]): Promise<null>;
}

/** Counts in Redis, for all processes together. Everything throws what ioredis throws. */
export function createRedisCounts(redis: RedisClient, { window, shortest, longest }: Backoff): FailureCounts {
  redis.defineCommand('reserveFailures', { lua: RESERVE });
  redis.defineCommand('giveBackFailures', { lua: GIVE_BACK });
  const commands = redis as unknown as Commands;
  // A script touches several keys at once; in a cluster the braces put all of them into one slot.
  const prefix = redis.isCluster ? '{guesses}:' : 'guesses:';
  return {
    async reserve(subjects) {
      const keys = subjects.map(({ key }) => prefix + key);
      const limits = subjects.map(({ limit }) => limit);
      const values = [...keys, window, shortest, longest, ...limits];
      const [waitMs, ...times] = await commands.reserveFailures(keys.length, ...values);
      return {
        waitMs,
        async giveBack() {
          if (waitMs === 0) await commands.giveBackFailures(keys.length, ...keys, ...times);
        },
      };
    },
    async forget(keys) {
      await redis.unlink(...keys.map((key) => prefix + key));
    },
  };
}

/** Counts in Redis, or in this process's memory while Redis does not answer. */
export function createSharedCounts(redis: RedisClient, logger: Logger, backoff: Backoff): FailureCounts {
  const shared = createRedisCounts(redis, backoff);
  const memory = createMemoryCounts(backoff);
  const breaker = createBreaker(logger, 'guesses are counted in this process: Redis does not count them');

  /** Undefined when Redis did not do it. */
  async function ask<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (!breaker.allows()) return undefined;
    try {
      const result = await work();
      breaker.report(true);
      return result;
    } catch (error) {
      breaker.report(false, error);
      return undefined;
    }
  }

  return {
    async reserve(subjects) {
      const reservation = await ask(() => shared.reserve(subjects));
      if (!reservation) return memory.reserve(subjects);
      // What cannot be given back is forgotten in time, like everything that was counted.
      return { ...reservation, giveBack: async () => void (await ask(reservation.giveBack)) };
    },
    async forget(keys) {
      await memory.forget(keys);
      await ask(() => shared.forget(keys));
    },
  };
}
