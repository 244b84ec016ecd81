import { createHash, createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { ConfigError, type Database } from '@content-platform/chassis';
import { accessTokenLifetime } from '../access-token-lifetime.ts';
import { audit } from '../audit.ts';
import { seal, unseal } from './sealing.ts';
import { createSigningKeyStore, type NewSigningKey, type StoredSigningKey } from './signing-key-store.ts';

/** In seconds. */
export const signingKeyTimes = {
  /** Published before it signs: for longer than anybody keeps a copy of the key set, which is 300 s. */
  ahead: 600,
  /** Published after the next one signs: as long as its tokens live, and a minute for clocks that differ. */
  kept: accessTokenLifetime + 60,
  /** Each process reads the keys so often. */
  reload: 10,
  /** Unknown kids cost at most one more reading in this time: anyone can invent them. */
  coolDown: 1,
};
export type SigningKeyTimes = typeof signingKeyTimes;

const generateRsaKey = promisify(generateKeyPair);

async function generate(secret: string): Promise<NewSigningKey> {
  const { publicKey, privateKey } = await generateRsaKey('rsa', { modulusLength: 2048 });
  const { n, e } = publicKey.export({ format: 'jwk' }) as { n: string; e: string };
  // The key's own thumbprint (RFC 7638): its members in this order.
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url');
  const plain = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    publicJwk: { kty: 'RSA', use: 'sig', alg: 'RS256', kid, n, e },
    sealed: await seal(plain, secret, kid),
  };
}

/** Throws ConfigError when it was sealed under another secret. */
export async function openPrivateKey({ kid, sealed }: StoredSigningKey, secret: string): Promise<KeyObject> {
  const der = await unseal(sealed, secret, kid).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not open the signing key in the database; it must be the one the key was made with',
    );
  });
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/**
 * The keys of the database, newest first. Where there is none an RS256 key of 2048 bits is made, which signs at once; a
 * lock lets one of several processes make it.
 */
export async function readOrMakeKeys(
  database: Pick<Database, 'query' | 'transaction'>,
  secret: string,
  { kept }: SigningKeyTimes,
): Promise<StoredSigningKey[]> {
  const keys = await createSigningKeyStore(database.query).list(kept);
  if (keys.length > 0) return keys;
  return database.transaction(async (query) => {
    const store = createSigningKeyStore(query);
    await store.lock();
    if ((await store.list(kept)).length === 0) await store.add(await generate(secret), 0);
    return store.list(kept);
  });
}

/** What comes of a rotation. `replaced` signs until `signsFrom` and is published until `publishedUntil`. */
export interface Rotation {
  kid: string;
  signsFrom: Date;
  replaced: string;
  publishedUntil: Date;
}

/**
 * Makes the key that signs next; every process hears of it. With one that does not sign yet it makes none and says when
 * that one does. Undefined where there is no key yet. Throws ConfigError when the keys there are were sealed under
 * another secret.
 */
export async function rotateSigningKey(
  database: Pick<Database, 'transaction'>,
  secret: string,
  { ahead, kept } = signingKeyTimes,
): Promise<Rotation | { waiting: string; signsFrom: Date } | undefined> {
  return database.transaction(async (query) => {
    const store = createSigningKeyStore(query);
    await store.lock();
    const newest = (await store.list(kept))[0];
    if (!newest) return undefined;
    if (newest.signsIn > 0) return { waiting: newest.kid, signsFrom: new Date(Date.now() + newest.signsIn) };
    await openPrivateKey(newest, secret);
    const key = await generate(secret);
    const signsFrom = await store.add(key, ahead);
    const { kid } = key.publicJwk;
    await audit(query, {
      event: 'signing_key_rotated',
      actor: 'command',
      details: { kid, signs_from: signsFrom },
    });
    const publishedUntil = new Date(signsFrom.getTime() + kept * 1000);
    return { kid, signsFrom, replaced: newest.kid, publishedUntil };
  });
}
