/** Whatever kept the cache from doing its part. A read goes on without it, a clear was not carried out. */
export abstract class CacheError extends Error {}

/** Redis could not be asked: away, hanging, or not yet usable after a reconnect. */
export class CacheUnavailable extends CacheError {
  override name = 'CacheUnavailable';
}

/** Redis answered, but refused, or it was restarted or replaced during a sweep. */
export class CacheRefused extends CacheError {
  override name = 'CacheRefused';
}

/** Slots of a cluster are on their way, or were while somebody asked. */
export class SlotsUnsettled extends CacheRefused {}

/** The key's slot belongs to another node, or is on its way to one (`isAsk`). Nothing was executed. */
export class SlotElsewhere extends SlotsUnsettled {
  readonly isAsk: boolean;
  constructor(message: string, isAsk: boolean) {
    super(message);
    this.isAsk = isAsk;
  }
}

/** This Redis cannot keep the promise, and waiting will not mend it: too old, or INFO is not allowed. */
export class CacheUnfit extends CacheError {
  override name = 'CacheUnfit';
}

/** Whether a refusal says that the server is a replica now: it stays one, and the primary is to be looked for anew. */
export function isDemoted(error: unknown): boolean {
  return /^(READONLY|MASTERDOWN) /.test((error as Error).message);
}

/** Whether a refusal says that too few replicas follow the server: it may have been cut off, and replaced. */
export function lacksReplicas(error: unknown): boolean {
  return (error as Error).message.startsWith('NOREPLICAS ');
}

/** Sorts what a command of ioredis was rejected with into the kinds above. */
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
