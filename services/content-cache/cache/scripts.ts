import { VIEWS } from './keys.ts';

/** The Lua sources of the protocol. Redis runs each as a whole: nothing comes between its lines. */
export interface ProtocolScripts {
  read: string;
  fill: string;
  clear: string;
  peek: string;
  incarnation: string;
}

/** What a server must have to be believed, besides what Redis itself asks for. */
export interface ReplicaGuard {
  /** How many replicas must follow it; 0: it may be without any. */
  atLeast: number;
  /** How long ago they may have been heard of, in seconds. */
  maxLagSeconds: number;
}

/**
 * The incarnation names this life of this server. A restart changes run_id, a promotion changes master_replid; entries
 * that a restart from an old file or a failover brings back from the dead carry another one, and count as absent.
 *
 * A replica has none, even where replicas may be written to. Nor has a primary with too few replicas: it may have been
 * cut off, and replaced. Redis's own count (min-replicas-to-write) is a second old: a primary that slept through the
 * failover would still answer by it when it wakes. So the lines of INFO are counted anew, as they are now:
 * slave0:ip=…,port=…,state=online,offset=…,lag=<seconds>
 */
const incarnationFor = ({ atLeast, maxLagSeconds }: ReplicaGuard) => `
local function incarnation()
  local info = redis.pcall('INFO', 'server', 'replication')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
  local replication = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
  if not run or not replication then
    error({ err = 'NOINCARNATION INFO does not tell run_id and master_replid' })
  end
  if not string.find(info, 'role:master', 1, true) then
    error({ err = 'READONLY this server is a replica' })
  end
${atLeast > 0 ? countReplicas(atLeast, maxLagSeconds) : ''}
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

const NOW = `
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`;

/** Reads fields of the hash; a value of another type is another program's, and has none. */
const FIELDS = `
local function fields_of(key, names)
  local values = redis.pcall('HMGET', key, unpack(names))
  if values.err then
    if not string.find(values.err, 'WRONGTYPE', 1, true) then error(values) end
    return {}
  end
  return values
end
`;

/** How many views are cached under a key, and whether anything of ours (a payload or a lease) is there at all. */
const CENSUS = `
local function census(key)
  local names = { ${VIEWS.flatMap((view) => [`'${view}:payload'`, `'${view}:lease'`]).join(', ')} }
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

/** The hash lives as long as the latest thing in it. Not PEXPIRE GT: that takes a key without a TTL for infinite. */
const KEEP_FOR = `
local function keep_for(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end
`;

/**
 * READ key; view, token, lease_ms -> HIT version payload | WAIT | FILL lease.
 *
 * The header, also FILL's: a script with it is refused as a whole where writing is not allowed (isolated primary,
 * read-only replica, failed save, full memory). Without it a primary that may not write still serves hits.
 */
const readFor = (incarnation: string) => `#!lua
${incarnation}${NOW}${FIELDS}${CENSUS}${KEEP_FOR}
local key, view, token, lease_ms = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local life, now = incarnation(), now_ms()
local payload, version, filled_under, expiry, lease, lease_end = unpack(fields_of(key, {
  view .. ':payload', view .. ':version', view .. ':incarnation', view .. ':expiry', view .. ':lease', view .. ':lease_end'
}))

if payload and version and filled_under == life and now < (tonumber(expiry) or 0) then
  return { 'HIT', version, payload }
end
if lease and string.find(lease, life .. '/', 1, true) == 1 and now < (tonumber(lease_end) or 0) then
  return { 'WAIT' }
end

if not payload and not lease then
  local _, ours = census(key)
  if not ours then redis.call('UNLINK', key) end
end
lease = life .. '/' .. token
redis.call('HSET', key, view .. ':lease', lease, view .. ':lease_end', now + lease_ms)
keep_for(key, lease_ms)
return { 'FILL', lease }
`;

/** FILL key; view, lease, ttl_ms, version, payload -> STORED | REFUSED. */
const fillFor = (incarnation: string) => `#!lua
${incarnation}${NOW}${FIELDS}${KEEP_FOR}
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
 *
 * The leases go with the hash: that is what refuses the FILL of a reader that read the database before the clear.
 * Clearing must go on when memory is full, hence the flag.
 */
const clearFor = (check: string) => `#!lua flags=allow-oom
${FIELDS}${CENSUS}${check}
local payloads, ours = census(KEYS[1])
local existed = redis.call('UNLINK', KEYS[1])
if existed == 1 and not ours then return 1 end
return payloads
`;

/**
 * PEEK key -> for each view that READ would serve: its version, and the first bytes of its payload, which tell a record
 * from what stands for none. It writes nothing; its header makes a primary that may not write refuse it, as READ does.
 */
const peekFor = (incarnation: string) => `#!lua
${incarnation}${NOW}${FIELDS}
local life, now, found = incarnation(), now_ms(), {}
for _, view in ipairs({ ${VIEWS.map((view) => `'${view}'`).join(', ')} }) do
  local payload, version, filled_under, expiry = unpack(fields_of(KEYS[1], {
    view .. ':payload', view .. ':version', view .. ':incarnation', view .. ':expiry'
  }))
  if payload and version and filled_under == life and now < (tonumber(expiry) or 0) then
    found[#found + 1] = { version, string.sub(payload, 1, 16) }
  end
end
return found
`;

/** INCARNATION -> the server's incarnation; refused, as CLEAR is, by a server that may not write. */
const askFor = (incarnation: string) => `#!lua flags=allow-oom
${incarnation}
return incarnation()
`;

export function createScripts(guard: ReplicaGuard): ProtocolScripts {
  const incarnation = incarnationFor(guard);
  return {
    read: readFor(incarnation),
    fill: fillFor(incarnation),
    // It asks for no incarnation, only for the replicas.
    clear: clearFor(guard.atLeast > 0 ? `${incarnation}\nincarnation()\n` : ''),
    peek: peekFor(incarnation),
    incarnation: askFor(incarnation),
  };
}

/** Those of a server that may be alone. */
export const protocolScripts = createScripts({ atLeast: 0, maxLagSeconds: 0 });
