import { views } from '@content-platform/contract';
import type { ProtocolScripts } from '../connection.ts';

/** How many replicas must follow a primary before the cache trusts it, besides Redis's own min-replicas-to-write. */
export interface ReplicaGuard {
  /** 0: the primary may be alone */
  atLeast: number;
  /** A replica counts if it acknowledged within this time, in seconds. */
  maxLagSeconds: number;
}

/**
 * The incarnation identifies one life of one server: a restart changes run_id, a promotion changes master_replid.
 * Entries that a restart from an old file or a failover brings back carry another incarnation and count as absent. A
 * replica has no incarnation, even a writable replica. Nor has a primary with too few replicas: a failover may have
 * replaced it. Redis's own count (min-replicas-to-write) is up to a second old, so a primary that was suspended during
 * the failover would still pass the check when it resumes. So the script counts the lines of INFO itself:
 * slave0:ip=…,port=…,state=online,offset=…,lag=<seconds>
 *
 * The two sections of INFO took half of READ's time. A connection ends with its server, so the reader sends the run_id
 * that its connection found, and READ and PEEK ask for master_replid alone. FILL asks for both: behind a proxy that has
 * silently replaced the server, nothing is stored.
 */
const incarnationFor = ({ atLeast, maxLagSeconds }: ReplicaGuard) => `
local function incarnation(run)
  local info = run and redis.pcall('INFO', 'replication') or redis.pcall('INFO', 'server', 'replication')
  local at = type(info) == 'string' and string.find(info, 'master_replid:', 1, true)
  run = run or (at and string.match(info, 'run_id:(%x+)'))
  if not run or not at then
    error({ err = 'NOINCARNATION INFO does not tell run_id and master_replid' })
  end
  if not string.find(info, 'role:master', 1, true) then
    error({ err = 'READONLY this server is a replica' })
  end
${atLeast > 0 ? countReplicas(atLeast, maxLagSeconds) : ''}
  local replication = string.sub(info, at + 14, at + 53)
  return run .. '-' .. replication
end
`;

const countReplicas = (atLeast: number, maxLagSeconds: number) => `
  local replicas = 0
  for line in string.gmatch(info, 'slave%d+:([^\\r\\n]+)') do
    local lag = tonumber(string.match(line, 'lag=(%d+)'))
    if string.find(line, 'state=online', 1, true) and lag and lag <= ${maxLagSeconds} then
      replicas = replicas + 1
    end
  end
  if replicas < ${atLeast} then
    error({ err = 'NOREPLICAS ' .. replicas .. ' replicas follow this server, CACHE_MIN_REPLICAS is ${atLeast}' })
  end
`;

const nowMs = `
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** Reads fields of the hash. A value of another type belongs to another program: it has no fields. */
const fieldsOf = `
local function fields_of(key, names)
  local values = redis.pcall('HMGET', key, unpack(names))
  if values.err then
    if not string.find(values.err, 'WRONGTYPE', 1, true) then error(values) end
    return {}
  end
  return values
end
`;

/** Returns how many views are cached under a key, and whether the key has a payload or a lease at all. */
const countViews = `
local function count_views(key)
  local names = { ${views.flatMap((view) => [`'${view}:payload'`, `'${view}:lease'`]).join(', ')} }
  local values, payloads, ours = fields_of(key, names), 0, false
  for i = 1, #names do
    if values[i] then
      ours = true
      if i % 2 == 1 then payloads = payloads + 1 end
    end
  end
  return payloads, ours
end
`;

/** Extends the key's TTL to at least `ms`. Not PEXPIRE GT: on a new key, which has no TTL yet, it would set none. */
const keepFor = `
local function keep_for(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end
`;

/**
 * READ key; view, token, lease_ms, run_id -> HIT version payload | WAIT | FILL lease. UNLINK deletes another program's
 * value, whose type HSET may refuse. Because of the header (also FILL's), Redis refuses the whole script where it may not
 * write: isolated primary, read-only replica, failed save, full memory. Otherwise such a primary would still serve hits.
 */
const readFor = (incarnation: string) => `#!lua
${incarnation}${nowMs}${fieldsOf}${countViews}${keepFor}
local key, view, token, lease_ms = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local life, now = incarnation(ARGV[4]), now_ms()
local payload, version, filled_under, expiry = unpack(fields_of(key, {
  view .. ':payload', view .. ':version', view .. ':incarnation', view .. ':expiry'
}))
if payload and version and filled_under == life and now < (tonumber(expiry) or 0) then
  return { 'HIT', version, payload }
end
local lease, lease_end = unpack(fields_of(key, { view .. ':lease', view .. ':lease_end' }))
if lease and string.find(lease, life .. '/', 1, true) == 1 and now < (tonumber(lease_end) or 0) then
  return { 'WAIT' }
end

if not payload and not lease then
  local _, ours = count_views(key)
  if not ours then redis.call('UNLINK', key) end
end
lease = life .. '/' .. token
redis.call('HSET', key, view .. ':lease', lease, view .. ':lease_end', now + lease_ms)
keep_for(key, lease_ms)
return { 'FILL', lease }
`;

/** FILL key; view, lease, ttl_ms, version, payload -> STORED | REFUSED. */
const fillFor = (incarnation: string) => `#!lua
${incarnation}${nowMs}${fieldsOf}${keepFor}
local key, view, lease, ttl_ms, version, payload = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local life = incarnation()
if fields_of(key, { view .. ':lease' })[1] ~= lease then return 'REFUSED' end
if string.find(lease, life .. '/', 1, true) ~= 1 then return 'REFUSED' end

redis.call('HSET', key, view .. ':payload', payload, view .. ':version', version,
  view .. ':incarnation', life, view .. ':expiry', now_ms() + ttl_ms)
redis.call('HDEL', key, view .. ':lease', view .. ':lease_end')
keep_for(key, ttl_ms)
return 'STORED'
`;

/**
 * CLEAR key -> how many keys that counts for: one for each cached view, one for another program's value.
 * CLEAR also deletes the leases: this refuses the FILL of a reader that read the database before the clear.
 * A clear must work while memory is full, hence the flag.
 */
const clearFor = (check: string) => `#!lua flags=allow-oom
${fieldsOf}${countViews}${check}
local payloads, ours = count_views(KEYS[1])
local existed = redis.call('UNLINK', KEYS[1])
if existed == 1 and not ours then return 1 end
return payloads
`;

/**
 * PEEK key; run_id -> 1 if a reader has a lease, else 0; then for each view that READ would serve: its version and the
 * first bytes of its payload, which distinguish a record from the entry of an absent record. A lease counts after its
 * end, too: FILL accepts it until another reader or a clear replaces it. PEEK writes nothing; the header makes Redis
 * refuse it whenever it refuses READ.
 */
const peekFor = (incarnation: string) => `#!lua
${incarnation}${nowMs}${fieldsOf}
local life, now, found = incarnation(ARGV[1]), now_ms(), { 0 }
for _, view in ipairs({ ${views.map((view) => `'${view}'`).join(', ')} }) do
  local payload, version, filled_under, expiry, lease = unpack(fields_of(KEYS[1], {
    view .. ':payload', view .. ':version', view .. ':incarnation', view .. ':expiry', view .. ':lease'
  }))
  if lease then found[1] = 1 end
  if payload and version and filled_under == life and now < (tonumber(expiry) or 0) then
    found[#found + 1] = { version, string.sub(payload, 1, 16) }
  end
end
return found
`;

export function createScripts(guard: ReplicaGuard): ProtocolScripts {
  const incarnation = incarnationFor(guard);
  return {
    read: readFor(incarnation),
    fill: fillFor(incarnation),
    // CLEAR needs no incarnation, only enough replicas.
    clear: clearFor(guard.atLeast > 0 ? `${incarnation}\nincarnation()\n` : ''),
    peek: peekFor(incarnation),
    // Refused, as CLEAR is, by a server that may not write.
    incarnation: `#!lua flags=allow-oom\n${incarnation}\nreturn incarnation()\n`,
  };
}
