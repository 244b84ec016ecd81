import { createPrivateKey, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint } from 'jose';
import { ConfigError } from '@content-platform/chassis';
import { maxTokenSeconds } from '../access-tokens.ts';
import { byCommand } from '../administration.ts';
import type { AuthDatabase } from '../stores.ts';
import { seal, unseal } from './sealing.ts';
import type { NewSigningKey, StoredSigningKey } from './signing-key-store.ts';
import type { SealedValue } from './secret-store.ts';

/** Times in seconds. */
export const signingKeyTimes = {
  /** Time from publishing a key to signing with it: longer than verifiers cache the key set, which is 300 s. */
  ahead: 600,
  /** Interval at which each process reads the keys, so that a leaked key is refused within a second. */
  reload: 0.5,
  /** Minimum time between two reads that unknown kids cause, because anyone can invent a kid. */
  coolDown: 1,
};

const generateRsaKey = promisify(generateKeyPair);

async function generate(secret: string): Promise<NewSigningKey> {
  const { publicKey, privateKey } = await generateRsaKey('rsa', { modulusLength: 3072 });
  const { n, e } = publicKey.export({ format: 'jwk' }) as { n: string; e: string };
  const kid = await calculateJwkThumbprint({ kty: 'RSA', n, e });
  const plain = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    publicJwk: { kty: 'RSA', use: 'sig', alg: 'RS256', kid, n, e },
    sealed: await seal(plain, secret, kid),
  };
}

/** Throws ConfigError if the key was sealed with another secret. */
export async function unsealPrivateKey({ kid, sealed }: StoredSigningKey, secret: string) {
  const der = await unseal(sealed, secret, kid).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not decrypt the signing key in the database; set the value that encrypted it',
    );
  });
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** Returns the keys, newest first. If there is none, creates an RS256 key of 3072 bits that signs immediately. */
export async function loadOrCreateKeys(
  database: Pick<AuthDatabase, 'signingKeys' | 'transaction'>,
  secret: string,
): Promise<StoredSigningKey[]> {
  const keys = await database.signingKeys.list();
  if (keys.length > 0) return keys;
  return database.transaction(async ({ signingKeys }) => {
    await signingKeys.lock();
    if ((await signingKeys.list()).length === 0) await signingKeys.add(await generate(secret), 0);
    return signingKeys.list();
  });
}

/** The result of a rotation. The key `replaced` signs until `signsFrom` and is published until `publishedUntil`. */
export interface Rotation {
  kid: string;
  signsFrom: Date;
  replaced: string;
  publishedUntil: Date;
}

/** Creates the next key. `waiting`: the kid of a key that does not sign yet. undefined: no key. Throws ConfigError. */
export async function rotateSigningKey(
  database: Pick<AuthDatabase, 'transaction'>,
  secret: string,
): Promise<Rotation | { waiting: string; signsFrom: Date } | undefined> {
  return database.transaction(async ({ signingKeys, audit }) => {
    await signingKeys.lock();
    const newest = (await signingKeys.list())[0];
    if (!newest) return undefined;
    if (newest.signsIn > 0) return { waiting: newest.kid, signsFrom: new Date(Date.now() + newest.signsIn) };
    // Checks the secret: the auth service could not decrypt a key that another secret sealed.
    await unsealPrivateKey(newest, secret);
    const key = await generate(secret);
    const signsFrom = await signingKeys.add(key, signingKeyTimes.ahead);
    const { kid } = key.publicJwk;
    await audit.add({ ...byCommand, event: 'signing_key_rotated', details: { kid, signs_from: signsFrom } });
    const publishedUntil = new Date(signsFrom.getTime() + maxTokenSeconds * 1000);
    return { kid, signsFrom, replaced: newest.kid, publishedUntil };
  });
}

/** Replaces all keys by one that signs immediately, and ends all access tokens. Returns the kid. Throws ConfigError. */
export async function replaceSigningKeys(database: Pick<AuthDatabase, 'transaction'>, secret: string) {
  const key = await generate(secret);
  const { kid } = key.publicJwk;
  await database.transaction(async ({ signingKeys, audit }) => {
    await signingKeys.lock();
    const newest = (await signingKeys.list())[0];
    if (newest) await unsealPrivateKey(newest, secret);
    await signingKeys.deleteAll();
    await signingKeys.add(key, 0);
    await audit.add({ ...byCommand, event: 'signing_key_rotated', details: { kid, now: true } });
  });
  return kid;
}

/** Throws if the secret does not decrypt one of the values. */
function unsealAll(all: readonly SealedValue[], secret: string): Promise<Buffer[]> {
  return Promise.all(all.map(({ sealed, context }) => unseal(sealed, secret, context)));
}

/**
 * Encrypts all values with the secret `next`, or changes nothing. Returns their number, or `done` if `next` decrypts
 * them already, so that the command can be repeated. Throws ConfigError if neither secret decrypts all.
 */
export async function rotateKeySecret(
  database: Pick<AuthDatabase, 'transaction'>,
  current: string,
  next: string,
): Promise<number | 'done'> {
  return database.transaction(async ({ signingKeys, secrets, audit }) => {
    await signingKeys.lock();
    await secrets.lock();
    const all = await secrets.listSealed();
    const plain = await unsealAll(all, current).catch(() => undefined);
    if (!plain) {
      await unsealAll(all, next).catch(() => {
        throw new ConfigError(
          'AUTH_KEY_SECRET does not decrypt the keys in the database; nothing was changed',
        );
      });
      return 'done';
    }
    for (const [index, old] of all.entries())
      await secrets.updateSealed({ ...old, sealed: await seal(plain[index]!, next, old.context) });
    await audit.add({ ...byCommand, event: 'key_secret_rotated', details: { sealed: all.length } });
    return all.length;
  });
}
