import { Problem } from './problem.ts';
import { randomSecret, readJson, type Secrets, writePrivate } from './state.ts';

/** Reads the current secrets of a stack. @throws Problem if they cannot be read */
export function readSecrets(file: string): Secrets {
  const secrets = readJson<Secrets>(file);
  if (!secrets) throw new Problem(`${file} cannot be read: restore the file.`);
  return secrets;
}

/**
 * Rotates the secret that encrypts the keys. Three steps make this crash-safe: store the next secret, encrypt the keys
 * with it, then replace the old secret. A run that finds a next secret uses it, because the run that stored it may have
 * encrypted the keys already. If two runs overlap, the first to finish replaces the old secret.
 * @param encrypt runs `rotate-key-secret`; if it returns false, the secret stays
 */
export async function rotateKeySecret(
  database: string,
  file: string,
  encrypt: (settings: Record<string, string>) => Promise<boolean>,
): Promise<void> {
  const before = readSecrets(file);
  const { authKeySecret, nextAuthKeySecret: next = randomSecret() } = before;
  writePrivate(file, { ...before, nextAuthKeySecret: next });
  const settings = { DATABASE_URL: database, AUTH_KEY_SECRET: authKeySecret, AUTH_KEY_SECRET_NEW: next };
  if (!(await encrypt(settings))) return;
  const { nextAuthKeySecret, ...secrets } = readSecrets(file);
  if (nextAuthKeySecret === next) writePrivate(file, { ...secrets, authKeySecret: next });
}
