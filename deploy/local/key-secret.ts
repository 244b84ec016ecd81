// The secret that the keys are encrypted with changes in three steps, so that it is never lost, whenever somebody pulls
// the plug: the next one is noted, everything is encrypted with it, and it takes the place of the old one.
import { join } from 'node:path';
import { ROOT } from './config.ts';
import { Problem } from './problem.ts';
import { lastLines, runCommand } from './run-command.ts';
import { randomSecret, readJson, type Secrets, writePrivate } from './state.ts';

const adminScript = join(ROOT, 'services', 'auth', 'admin.ts');
const rotationTimeoutMs = 60_000;

/** A stack's secrets as they are at the moment. @throws Problem when they cannot be read */
export function readSecrets(file: string): Secrets {
  const secrets = readJson<Secrets>(file);
  if (!secrets) throw new Problem(`${file} cannot be read: mend it.`);
  return secrets;
}

/**
 * Notes the secret that is to come: the one that an interrupted run has noted, or a new one.
 * @returns both, as `rotate-key-secret` reads them
 */
export function noteNextKeySecret(file: string): { AUTH_KEY_SECRET: string; AUTH_KEY_SECRET_NEW: string } {
  const secrets = readSecrets(file);
  const { authKeySecret, nextAuthKeySecret = randomSecret() } = secrets;
  writePrivate(file, { ...secrets, nextAuthKeySecret });
  return { AUTH_KEY_SECRET: authKeySecret, AUTH_KEY_SECRET_NEW: nextAuthKeySecret };
}

/** The noted secret is the one, from now on; nothing happens when another run has said so already. */
export function adoptKeySecret(file: string, noted: string): void {
  const { nextAuthKeySecret, ...secrets } = readSecrets(file);
  if (nextAuthKeySecret === noted) writePrivate(file, { ...secrets, authKeySecret: noted });
}

/**
 * Finishes a rotation that was interrupted, if there is one. Forwards, not back: its command may still be at it though
 * who started it is gone, and the second of the two finds everything done.
 * @throws Problem when it cannot be finished; the next start tries again
 */
export async function finishKeySecretRotation(postgres: string, file: string): Promise<void> {
  if (readSecrets(file).nextAuthKeySecret === undefined) return;
  const secrets = noteNextKeySecret(file);
  const { code, output } = await runCommand(process.execPath, [adminScript, 'rotate-key-secret'], {
    env: { DATABASE_URL: postgres, ...secrets },
    within: rotationTimeoutMs,
  });
  if (code !== 0)
    throw new Problem(
      `A rotation of the key secret was interrupted, and cannot be finished with the secrets in ${file}.`,
      lastLines(output),
    );
  adoptKeySecret(file, secrets.AUTH_KEY_SECRET_NEW);
}
