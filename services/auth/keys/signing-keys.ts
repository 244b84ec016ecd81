import { createPublicKey, type KeyObject } from 'node:crypto';
import { type Logger, unavailable } from '@content-platform/chassis';
import type { AuthDatabase } from '../stores.ts';
import { unsealPrivateKey, loadOrCreateKeys, signingKeyTimes } from './key-rotation.ts';
import type { StoredSigningKey } from './signing-key-store.ts';

/** The current keys that sign access tokens and verify them in this service. */
export type SigningKeys = Awaited<ReturnType<typeof loadSigningKeys>>;

interface LoadedKey extends StoredSigningKey {
  publicKey: KeyObject;
  /** undefined: this process cannot decrypt the key. */
  privateKey: KeyObject | undefined;
  /** A performance.now() time, computed from the database's clock, so that all processes agree. */
  signsFrom: number;
}

/**
 * Creates the first key, and reads those of other processes regularly. Throws ConfigError if another secret sealed a
 * key. After a later failure the process continues with the loaded keys.
 */
export async function loadSigningKeys(
  database: Pick<AuthDatabase, 'signingKeys' | 'transaction'>,
  secret: string,
  logger: Logger,
  times = signingKeyTimes,
) {
  let loaded: LoadedKey[] = [];
  let readAt = -Infinity;
  let failing = false;
  let mustRestart = false;
  let reading: Promise<void> | undefined;

  /** Decrypts a new key. A decrypted key stays usable, even if it is sealed with another secret later. */
  async function toLoadedKey(key: StoredSigningKey, open: typeof tryUnseal): Promise<LoadedKey> {
    const known = loaded.find(({ kid }) => kid === key.kid);
    const isSame = known?.sealed.equals(key.sealed);
    const privateKey = isSame ? known?.privateKey : ((await open(key)) ?? known?.privateKey);
    const publicKey = known?.publicKey ?? createPublicKey({ key: { ...key.publicJwk }, format: 'jwk' });
    return { ...key, publicKey, privateKey, signsFrom: performance.now() + key.signsIn };
  }

  /** Returns undefined, and logs that once, if the key was sealed with another secret since the start. */
  async function tryUnseal(key: StoredSigningKey): Promise<KeyObject | undefined> {
    return unsealPrivateKey(key, secret).catch(() => {
      if (!mustRestart)
        logger.error(
          'AUTH_KEY_SECRET was changed; this process continues with the loaded keys until it is restarted with the new secret',
        );
      mustRestart = true;
      return undefined;
    });
  }

  async function read(open: typeof tryUnseal): Promise<void> {
    const stored = await loadOrCreateKeys(database, secret);
    loaded = await Promise.all(stored.map((key) => toLoadedKey(key, open)));
    readAt = performance.now();
  }

  async function readAgain(): Promise<void> {
    try {
      await read(tryUnseal);
      failing = false;
    } catch (error) {
      if (!failing) logger.warn({ error }, 'signing keys not read; using the loaded keys');
      failing = true;
      readAt = performance.now();
    }
  }

  function reload(): Promise<void> {
    reading ??= readAgain().finally(() => (reading = undefined));
    return reading;
  }

  await read((key) => unsealPrivateKey(key, secret));
  const timer = setInterval(() => void reload(), times.reload * 1000);
  const find = (kid: string) => loaded.find((key) => key.kid === kid)?.publicKey;

  return {
    has: (kid: string) => find(kid) !== undefined,
    /** The newest key that may sign now, or the oldest after a clock was set back. Throws 503 if none can be decrypted. */
    get current() {
      const now = performance.now();
      const usable = loaded.filter(({ privateKey }) => privateKey);
      const key = usable.find(({ signsFrom }) => signsFrom <= now) ?? usable.at(-1);
      if (!key) throw unavailable('Access tokens cannot be issued now. Retry later.');
      return { kid: key.kid, privateKey: key.privateKey! };
    },
    get public() {
      return loaded.map(({ publicJwk }) => publicJwk);
    },
    async get(kid: string) {
      const key = find(kid);
      if (key) return key;
      // Not more often, because anyone can invent a kid.
      if (performance.now() - readAt > times.coolDown * 1000) await reload();
      if (failing && !find(kid)) throw unavailable('Access tokens cannot be checked now. Retry later.');
      return find(kid);
    },
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}
