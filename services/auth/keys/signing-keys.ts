import { createPublicKey, type KeyObject } from 'node:crypto';
import { type Database, type KeySource, type Logger, unavailable } from '@content-platform/chassis';
import { openPrivateKey, readOrMakeKeys, signingKeyTimes } from './key-rotation.ts';
import type { PublicJwk, StoredSigningKey } from './signing-key-store.ts';

/** The keys that access tokens are signed with, and checked with in this service. Each says what is so at the moment. */
export interface SigningKeys extends KeySource {
  /** The one that signs: the newest whose time has come. Throws 503 when this process can open none. */
  readonly current: { kid: string; privateKey: KeyObject };
  readonly public: PublicJwk[];
  /** Ends the reading of new ones. */
  close(): Promise<void>;
}

interface HeldKey {
  kid: string;
  jwk: PublicJwk;
  publicKey: KeyObject;
  sealed: Buffer;
  /** undefined: this process could not open it */
  privateKey: KeyObject | undefined;
  /** By performance.now(), so that the one clock is the database's. */
  signsFrom: number;
}

/**
 * The signing keys of the database, the first of which is made here if need be, and all that other processes and
 * commands make later. Throws ConfigError when one was sealed under another secret; when that happens later, or the
 * database cannot be read, the process goes on with what it has.
 */
export async function loadSigningKeys(
  database: Pick<Database, 'query' | 'transaction'>,
  secret: string,
  logger: Logger,
  times = signingKeyTimes,
): Promise<SigningKeys> {
  let held: HeldKey[] = [];
  let readAt = -Infinity;
  let failing = false;
  let mustRestart = false;
  let reading: Promise<void> | undefined;

  /** Opens what is new; what was opened before stays open though it was sealed under another secret since. */
  async function hold(key: StoredSigningKey, opened: typeof openLater): Promise<HeldKey> {
    const { kid, publicJwk: jwk, sealed, signsIn } = key;
    const known = held.find((other) => other.kid === kid);
    const privateKey = known?.sealed.equals(sealed)
      ? known.privateKey
      : ((await opened(key)) ?? known?.privateKey);
    const publicKey = known?.publicKey ?? createPublicKey({ key: { ...jwk }, format: 'jwk' });
    return { kid, jwk, publicKey, sealed, privateKey, signsFrom: performance.now() + signsIn };
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

  async function read(opened: typeof openLater): Promise<void> {
    const stored = await readOrMakeKeys(database, secret, times);
    held = await Promise.all(stored.map((key) => hold(key, opened)));
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
      return held.map(({ jwk }) => jwk);
    },
    async get(kid) {
      const key = find(kid);
      if (key) return key;
      // Another process may have heard of it first.
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
