// Rotates the secret that encrypts the keys. Three steps make the rotation crash-safe: store the next secret, encrypt the
// keys with it, then replace the old secret.
import { join } from 'node:path';
import { ROOT } from './config.ts';
import { Problem } from './problem.ts';
import { lastLines, runCommand } from './run-command.ts';
import { randomSecret, readJson, type Secrets, writePrivate } from './state.ts';

const adminScript = join(ROOT, 'services', 'auth', 'admin.ts');
const rotationTimeoutMs = 60_000;

/** Reads the current secrets of a stack. @throws Problem if they cannot be read */
export function readSecrets(file: string): Secrets {
  const secrets = readJson<Secrets>(file);
  if (!secrets) throw new Problem(`${file} cannot be read: fix it.`);
  return secrets;
}

/**
 * Stores the next secret. Keeps the next secret of an interrupted run, if there is one.
 * @returns both secrets in the format that `rotate-key-secret` reads
 */
export function storeNextKeySecret(file: string): { AUTH_KEY_SECRET: string; AUTH_KEY_SECRET_NEW: string } {
  const secrets = readSecrets(file);
  const { authKeySecret, nextAuthKeySecret = randomSecret() } = secrets;
  writePrivate(file, { ...secrets, nextAuthKeySecret });
  return { AUTH_KEY_SECRET: authKeySecret, AUTH_KEY_SECRET_NEW: nextAuthKeySecret };
}

/** Replaces the secret with the stored next one. Has no effect if another run has already done so. */
export function activateNextKeySecret(file: string, noted: string): void {
  const { nextAuthKeySecret, ...secrets } = readSecrets(file);
  if (nextAuthKeySecret === noted) writePrivate(file, { ...secrets, authKeySecret: noted });
}

/**
 * Completes an interrupted rotation, if there is one. It does not roll back, because the command of the interrupted run
 * may still be running; the second one then has nothing to do.
 * @throws Problem if the rotation cannot be completed; the next start retries
 */
export async function finishKeySecretRotation(postgres: string, file: string): Promise<void> {
  if (readSecrets(file).nextAuthKeySecret === undefined) return;
  const secrets = storeNextKeySecret(file);
  const { code, output } = await runCommand(process.execPath, [adminScript, 'rotate-key-secret'], {
    env: { DATABASE_URL: postgres, ...secrets },
    within: rotationTimeoutMs,
  });
  if (code !== 0)
    throw new Problem(
      `A rotation of the key secret was interrupted, and cannot be finished with the secrets in ${file}.`,
      lastLines(output),
    );
  activateNextKeySecret(file, secrets.AUTH_KEY_SECRET_NEW);
}
