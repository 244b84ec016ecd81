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

/** Slots of the cluster are moving, or moved during the request. */
export class SlotsUnsettled extends CacheRefused {}

/** The key's slot belongs to another node, or is moving to another node (`isAsk`). Nothing was executed. */
export class SlotElsewhere extends SlotsUnsettled {
  readonly isAsk: boolean;
  constructor(message: string, isAsk: boolean) {
    super(message);
    this.isAsk = isAsk;
  }
}

/** This Redis can never keep the protocol's promise: its version is too old, or its user may not call INFO. */
export class CacheUnfit extends CacheError {
  override name = 'CacheUnfit';
}

/** Whether a refusal shows that the server is now a replica: the primary must be located again. */
export function isDemoted(error: unknown): boolean {
  return /^(READONLY|MASTERDOWN) /.test((error as Error).message);
}

/** Whether a refusal shows that too few replicas follow the server: a failover may have replaced it. */
export function lacksReplicas(error: unknown): boolean {
  return (error as Error).message.startsWith('NOREPLICAS ');
}

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
  const [, redirection] = /^(MOVED|ASK) /.exec(message) ?? [];
  if (redirection) return new SlotElsewhere(`${command}: ${message}`, redirection === 'ASK');
  return new CacheRefused(`${command}: ${message}`, { cause: error });
}
