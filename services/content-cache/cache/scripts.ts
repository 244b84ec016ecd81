import { VIEWS } from './keys.ts';

/** The Lua sources of the protocol. Redis runs each as a whole: nothing comes between its lines. */
export interface ProtocolScripts {
  read: string;
  fill: string;
  clear: string;
  peek: string;
  incarnation: string;
}

/**
 * The incarnation names this life of this server. A restart changes run_id, a promotion changes master_replid; entries
 * that a restart from an old file or a failover brings back from the dead carry another one, and count as absent.
 */
const INCARNATION = `
local function incarnation()
  local info = redis.pcall('INFO', 'server', 'replication')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
  local replication = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
  if not run or not replication then
    error({ err = 'NOINCARNATION INFO does not tell run_id and master_replid' })
  end
  return run .. '-' .. replication
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
const READ = `#!lua
${INCARNATION}${NOW}${FIELDS}${CENSUS}${KEEP_FOR}
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
const FILL = `#!lua
${INCARNATION}${NOW}${FIELDS}${KEEP_FOR}
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
const CLEAR = `#!lua flags=allow-oom
${FIELDS}${CENSUS}
local payloads, ours = census(KEYS[1])
local existed = redis.call('UNLINK', KEYS[1])
if existed == 1 and not ours then return 1 end
return payloads
`;

/**
 * PEEK key -> for each view that READ would serve: its version, and the first bytes of its payload, which tell a record
 * from what stands for none. It writes nothing; its header makes a primary that may not write refuse it, as READ does.
 */
const PEEK = `#!lua
${INCARNATION}${NOW}${FIELDS}
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
const ASK_INCARNATION = `#!lua flags=allow-oom
${INCARNATION}
return incarnation()
`;

export const protocolScripts: ProtocolScripts = {
  read: READ,
  fill: FILL,
  clear: CLEAR,
  peek: PEEK,
  incarnation: ASK_INCARNATION,
};
