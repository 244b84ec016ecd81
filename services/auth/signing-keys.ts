import { createHash, createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { ConfigError, type Database, type KeySource } from '@content-platform/chassis';
import { seal, unseal } from './sealing.ts';

/** A public key as it is published (RFC 7517). */
export interface PublicJwk {
  kty: 'RSA';
  use: 'sig';
  alg: 'RS256';
  kid: string;
  n: string;
  e: string;
}

/** The keys that access tokens are signed with, and checked with in this service. */
export interface SigningKeys extends KeySource {
  /** The one that signs: the newest. */
  current: { kid: string; privateKey: KeyObject };
  public: PublicJwk[];
}

interface Row {
  kid: string;
  public_jwk: PublicJwk;
  sealed_private_key: Buffer;
}

const generateRsaKey = promisify(generateKeyPair);

async function generate(secret: string): Promise<Row> {
  const { publicKey, privateKey } = await generateRsaKey('rsa', { modulusLength: 2048 });
  const { n, e } = publicKey.export({ format: 'jwk' }) as { n: string; e: string };
  // The key's own thumbprint (RFC 7638): its members in this order.
  const kid = createHash('sha256')
    .update(JSON.stringify({ e, kty: 'RSA', n }))
    .digest('base64url');
  const plain = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    kid,
    public_jwk: { kty: 'RSA', use: 'sig', alg: 'RS256', kid, n, e },
    sealed_private_key: await seal(plain, secret, kid),
  };
}

/** All keys, newest first; the first key is made here. The lock lets one of several processes that start make it. */
async function readOrGenerate(database: Database, secret: string): Promise<Row[]> {
  return database.transaction(async (query) => {
    await query('lock_signing_keys', `SELECT pg_advisory_xact_lock(hashtext('auth.signing_key'))`);
    const { rows } = await query<Row>(
      'list_signing_keys',
      'SELECT kid, public_jwk, sealed_private_key FROM auth.signing_key ORDER BY created_at DESC',
    );
    if (rows.length > 0) return rows;
    const row = await generate(secret);
    await query(
      'create_signing_key',
      'INSERT INTO auth.signing_key (kid, public_jwk, sealed_private_key) VALUES ($1, $2, $3)',
      [row.kid, row.public_jwk, row.sealed_private_key],
    );
    return [row];
  });
}

/**
 * The signing keys of the database. At the first start an RS256 key of 2048 bits is made and stored sealed under
 * `secret`. Throws ConfigError when they were sealed under another secret.
 */
export async function loadSigningKeys(database: Database, secret: string): Promise<SigningKeys> {
  const rows = await readOrGenerate(database, secret);
  const newest = rows[0]!;
  const der = await unseal(newest.sealed_private_key, secret, newest.kid).catch(() => {
    throw new ConfigError(
      'AUTH_KEY_SECRET does not open the signing key in the database; it must be the one the key was made with',
    );
  });
  const publicKeys = new Map(
    rows.map((row) => [row.kid, createPublicKey({ key: { ...row.public_jwk }, format: 'jwk' })]),
  );
  return {
    current: {
      kid: newest.kid,
      privateKey: createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }),
    },
    public: rows.map((row) => row.public_jwk),
    get: (kid) => Promise.resolve(publicKeys.get(kid)),
  };
}
