/** The cache could not do its part: a read continues without the cache, a clear was not carried out. */
export abstract class CacheError extends Error {}

/** Redis did not answer: unreachable, hanging, or not yet usable after a reconnect. */
export class CacheUnavailable extends CacheError {
  override name = 'CacheUnavailable';
}

/** Redis refused the command, or was restarted or replaced during a sweep. */
export class CacheRefused extends CacheError {
  override name = 'CacheRefused';
}

/** The server is now a replica: the primary must be located again. */
export class Demoted extends CacheRefused {}

/** Too few replicas follow the server: a failover may have replaced it. */
export class LacksReplicas extends CacheRefused {}

/** Slots of the cluster are moving, or moved during the request. */
export class SlotsUnsettled extends CacheRefused {}

/** The key's slot belongs to another node. Nothing was executed. */
export class SlotMoved extends SlotsUnsettled {}

/** This Redis can never keep the protocol's promise: its version is too old, or its user may not call INFO. */
export class CacheUnfit extends CacheError {
  override name = 'CacheUnfit';
}

/** By the first word of Redis's refusal. */
const refusals: Record<string, typeof CacheRefused> = {
  READONLY: Demoted,
  MASTERDOWN: Demoted,
  NOREPLICAS: LacksReplicas,
  MOVED: SlotMoved,
  // The slot is moving, and the key is not on this node (any more).
  ASK: SlotsUnsettled,
};

/** Maps the rejection of an ioredis command to a CacheError. */
export function asCacheError(command: string, error: unknown): CacheError {
  const { name, message } = error as Error;
  if (name !== 'ReplyError') return new CacheUnavailable(`${command}: ${message}`, { cause: error });
  if (message.includes('NOINCARNATION')) {
    return new CacheUnfit(
      'Redis does not tell run_id and master_replid: its user needs the right to INFO (ACL: +info)',
    );
  }
  if (message.includes('compiling script')) {
    return new CacheUnfit(
      'Redis 7 or Valkey 7.2 or newer is needed: this server does not know script flags (#!lua)',
    );
  }
  const Refusal = refusals[message.split(' ', 1)[0]!] ?? CacheRefused;
  return new Refusal(`${command}: ${message}`, { cause: error });
}
