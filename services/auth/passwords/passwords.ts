import argon2 from '@node-rs/argon2';
import bcrypt from '@node-rs/bcrypt';
import { createSemaphore } from '@content-platform/chassis';

/** Parameters of the OWASP Password Storage Cheat Sheet: 19 MiB, 2 passes, 1 lane. Algorithm 2 is argon2id. */
const parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const prefix = '$argon2id$v=19$m=19456,t=2,p=1$';
/** A hash that no password matches: a digest of zeros. */
const unmatched = `${prefix}${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** Leaves one of libuv's four threads free for other work. */
const maxRunning = 3;
/** About half a second of waiting on two cores. */
const maxWaiting = 40;

const bcryptForm = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
/** The cost of PHP and Laravel. With a higher cost, the time of a failed login would reveal the bcrypt hash. */
const maxBcryptCost = 12;
/** In KiB. Several verifications run in parallel, within the memory of the container. */
const maxArgon2Memory = 65_536;
const maxArgon2Work = maxArgon2Memory * 4;

/** Our hashes are of the NFC form (RFC 8265 §4.2), imported ones of the typed form, even with the same parameters. */
function normalizations(password: string, hash: string): Iterable<string> {
  return isOutdated(hash) ? [password] : new Set([password.normalize('NFC'), password]);
}

function matches(hash: string, password: string): Promise<boolean> {
  return bcryptForm.test(hash) ? bcrypt.verify(password, hash) : argon2.verify(hash, password);
}

export type Passwords = ReturnType<typeof createPasswords>;

/** Hashes and verifies passwords and client secrets, a few at a time. Throws 503 if too many calls wait. */
export function createPasswords() {
  const hashing = createSemaphore(maxRunning, maxWaiting);
  const admitted = createSemaphore(maxRunning + maxWaiting, 0);
  return {
    /** Runs `work`, which looks up and verifies a hash. Under overload it throws 503 before `work` queries anything. */
    limit: <T>(work: () => Promise<T>) => admitted.run(work),
    /** Returns the argon2id hash of the NFC form with the parameters above, as a PHC string. */
    hash: (password: string) => hashing.run(() => argon2.hash(password.normalize('NFC'), parameters)),
    /** Without a `hash` it takes as long as a real verification and returns false. */
    async verify(hash: string | null | undefined, password: string): Promise<boolean> {
      const stored = hash ?? unmatched;
      const valid = await hashing.run(async () => {
        for (const form of normalizations(password, stored)) if (await matches(stored, form)) return true;
        return false;
      });
      return valid && hash !== undefined && hash !== null;
    },
  };
}

/** Returns whether the hash has another algorithm or cost than new hashes. */
export const isOutdated = (hash: string): boolean => !hash.startsWith(prefix);

/** Returns whether an imported hash is accepted: bcrypt ($2y$, $2a$, $2b$) or argon2id, up to the cost limits above. */
export function isSupported(hash: string): boolean {
  const cost = bcryptForm.exec(hash)?.[1];
  if (cost !== undefined) return Number(cost) >= 4 && Number(cost) <= maxBcryptCost;
  if (!hash.startsWith('$argon2id$v=19$')) return false;
  try {
    const { memoryCost, timeCost } = argon2.parseOptions(hash);
    return memoryCost <= maxArgon2Memory && memoryCost * timeCost <= maxArgon2Work;
  } catch {
    return false;
  }
}
