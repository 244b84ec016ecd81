import { createPublicKey, type KeyObject } from 'node:crypto';
import { type KeySource, type Logger, unavailable } from '@content-platform/chassis';
import type { AuthDatabase } from '../stores.ts';
import { openPrivateKey, readOrMakeKeys, signingKeyTimes } from './key-rotation.ts';
import type { PublicJwk, StoredSigningKey } from './signing-key-store.ts';

/** The keys with which access tokens are signed, and checked in this service, as they are at the moment. */
export interface SigningKeys extends KeySource {
  /** The newest key whose time to sign has come. Throws 503 if this process can open none. */
  readonly current: { kid: string; privateKey: KeyObject };
  readonly public: PublicJwk[];
  /** Stops reading new keys. */
  close(): Promise<void>;
}

interface HeldKey extends StoredSigningKey {
  publicKey: KeyObject;
  /** undefined: this process could not open it. */
  privateKey: KeyObject | undefined;
  /** By performance.now(), so that all processes follow the database's clock. */
  signsFrom: number;
}

/**
 * Reads the signing keys of the database, makes the first one if there is none, and then reads regularly those that
 * other processes and commands make. Throws ConfigError if one was sealed under another secret. If that happens later,
 * or the database cannot be read, the process continues with the keys it has.
 */
export async function loadSigningKeys(
  database: Pick<AuthDatabase, 'signingKeys' | 'transaction'>,
  secret: string,
  logger: Logger,
  times = signingKeyTimes,
): Promise<SigningKeys> {
  let held: HeldKey[] = [];
  let readAt = -Infinity;
  let failing = false;
  let mustRestart = false;
  let reading: Promise<void> | undefined;

  /** Opens a new key. A key that was opened before stays open, also when it was sealed under another secret since. */
  async function toHeld(key: StoredSigningKey, open: typeof openLater): Promise<HeldKey> {
    const known = held.find(({ kid }) => kid === key.kid);
    const isSame = known?.sealed.equals(key.sealed);
    const privateKey = isSame ? known?.privateKey : ((await open(key)) ?? known?.privateKey);
    const publicKey = known?.publicKey ?? createPublicKey({ key: { ...key.publicJwk }, format: 'jwk' });
    return { ...key, publicKey, privateKey, signsFrom: performance.now() + key.signsIn };
  }

  async function openLater(key: StoredSigningKey): Promise<KeyObject | undefined> {
    return openPrivateKey(key, secret).catch(() => {
      if (!mustRestart)
        logger.error(
          'AUTH_KEY_SECRET was changed: this process goes on with the keys it has; restart it with the new secret',
        );
      mustRestart = true;
      return undefined;
    });
  }

  async function read(open: typeof openLater): Promise<void> {
    const stored = await readOrMakeKeys(database, secret);
    held = await Promise.all(stored.map((key) => toHeld(key, open)));
    readAt = performance.now();
  }

  async function readAgain(): Promise<void> {
    try {
      await read(openLater);
      failing = false;
    } catch (error) {
      if (!failing) logger.warn({ error }, 'the signing keys could not be read; going on with what is known');
      failing = true;
      readAt = performance.now();
    }
  }

  function reload(): Promise<void> {
    reading ??= readAgain().finally(() => (reading = undefined));
    return reading;
  }

  await read((key) => openPrivateKey(key, secret));
  const timer = setInterval(() => void reload(), times.reload * 1000);
  const find = (kid: string) => held.find((key) => key.kid === kid)?.publicKey;

  return {
    get current() {
      const now = performance.now();
      const key = held.find(({ privateKey, signsFrom }) => privateKey && signsFrom <= now);
      if (!key) throw unavailable('Tokens cannot be issued at the moment.');
      return { kid: key.kid, privateKey: key.privateKey! };
    },
    get public() {
      return held.map(({ publicJwk }) => publicJwk);
    },
    async get(kid) {
      const key = find(kid);
      if (key) return key;
      // Another process may have read a new key first.
      if (performance.now() - readAt > times.coolDown * 1000) await reload();
      if (failing && !find(kid)) throw unavailable('Tokens cannot be checked at the moment.');
      return find(kid);
    },
    async close() {
      clearInterval(timer);
      await reading;
    },
  };
}
