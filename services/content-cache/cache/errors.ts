/** The cache is unavailable or refused a command. A read then continues without the cache; a clear was not carried out. */
export abstract class CacheError extends Error {}

/** Redis did not respond: it is unreachable, hangs, or is not yet usable after a reconnect. */
export class CacheUnavailable extends CacheError {
  override name = 'CacheUnavailable';
}

/** Redis refused the command, or was restarted or replaced during a sweep. */
export class CacheRefused extends CacheError {
  override name = 'CacheRefused';
}

/** The server is now a replica: the primary must be located again. */
export class DemotedToReplica extends CacheRefused {}

/** Too few replicas follow the server: a failover may have replaced it. */
export class TooFewReplicas extends CacheRefused {}

/** Slots of the cluster are moving, or moved during the request. */
export class SlotsMoving extends CacheRefused {}

/** The key's slot belongs to another node. Nothing was executed. */
export class SlotMoved extends SlotsMoving {}

/** The protocol cannot run on this Redis: its version is too old, or its user may not call INFO. */
export class UnsupportedRedis extends CacheError {
  override name = 'UnsupportedRedis';
}

/** Errors by the first word of Redis's reply. */
const refusals: Record<string, typeof CacheRefused> = {
  READONLY: DemotedToReplica,
  MASTERDOWN: DemotedToReplica,
  NOREPLICAS: TooFewReplicas,
  MOVED: SlotMoved,
  // The slot is moving, and the key is no longer on this node.
  ASK: SlotsMoving,
};

/** Maps the rejection of an ioredis command to a CacheError. */
export function toCacheError(command: string, error: unknown): CacheError {
  const { name, message } = error as Error;
  if (name !== 'ReplyError') return new CacheUnavailable(`${command}: ${message}`, { cause: error });
  if (message.includes('NOINCARNATION')) {
    return new UnsupportedRedis(
      'Redis does not report run_id and master_replid: give its user the right to call INFO (ACL: +info)',
    );
  }
  if (message.includes('compiling script')) {
    return new UnsupportedRedis(
      'This server does not support script flags (#!lua): use Redis 7, Valkey 7.2 or newer',
    );
  }
  const Refusal = refusals[message.split(' ', 1)[0]!] ?? CacheRefused;
  return new Refusal(`${command}: ${message}`, { cause: error });
}
