import argon2 from '@node-rs/argon2';
import bcrypt from '@node-rs/bcrypt';
import { createSlots } from '@content-platform/chassis';

/** Hashes and checks passwords and client secrets, a few at a time. All throw 503 when too many wait already. */
export interface Passwords {
  /** Does `work`, which looks a hash up and verifies it: who is refused has not even cost the look-up. */
  admit<T>(work: () => Promise<T>): Promise<T>;
  /** argon2id of the NFC form with the parameters below, as a PHC string. */
  hash(password: string): Promise<string>;
  /** `hash` missing: nobody of that name, or no password; false after the work that a real check would have been. */
  verify(hash: string | null | undefined, password: string): Promise<boolean>;
}

/** 19 MiB, 2 passes, 1 lane: the OWASP Password Storage Cheat Sheet's choice. Algorithm 2 is argon2id. */
const parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const prefix = '$argon2id$v=19$m=19456,t=2,p=1$';
/** A digest of zeros, which no password has. */
const nobody = `${prefix}${'A'.repeat(22)}$${'A'.repeat(43)}`;

/** One of libuv's four threads stays free for everything else that uses them. */
const running = 3;
/** About half a second of waiting on two processors. */
const waiting = 40;

const bcryptForm = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
/** PHP's and Laravel's own. Costlier ones would take longer than a refused login otherwise does, and so be seen. */
const maxBcryptCost = 12;
const maxArgon2Work = 65_536 * 4;

/**
 * In which forms a password is compared with a hash. Ours are of the NFC form (RFC 8265 §4.2), in which another keyboard
 * or system gives the same; older ones of ours, and those made elsewhere, are of what was typed.
 */
function formsOf(password: string, hash: string): Iterable<string> {
  return isOutdated(hash) ? [password] : new Set([password.normalize('NFC'), password]);
}

function matches(hash: string, password: string): Promise<boolean> {
  return bcryptForm.test(hash) ? bcrypt.verify(password, hash) : argon2.verify(hash, password);
}

export function createPasswords(): Passwords {
  const hashing = createSlots(running, waiting);
  const admitted = createSlots(running + waiting, 0);
  return {
    admit: (work) => admitted.run(work),
    hash: (password) => hashing.run(() => argon2.hash(password.normalize('NFC'), parameters)),
    async verify(hash, password) {
      const stored = hash ?? nobody;
      const valid = await hashing.run(async () => {
        for (const form of formsOf(password, stored)) if (await matches(stored, form)) return true;
        return false;
      });
      return valid && hash !== undefined && hash !== null;
    },
  };
}

/** Whether the hash is of another kind or cost than those made now. */
export function isOutdated(hash: string): boolean {
  return !hash.startsWith(prefix);
}

/** Whether a hash made elsewhere can be taken: bcrypt ($2y$, $2a$, $2b$) or argon2id, of bearable cost. */
export function isSupported(hash: string): boolean {
  const cost = bcryptForm.exec(hash)?.[1];
  if (cost !== undefined) return Number(cost) >= 4 && Number(cost) <= maxBcryptCost;
  if (!hash.startsWith('$argon2id$v=19$')) return false;
  try {
    const { memoryCost, timeCost } = argon2.parseOptions(hash);
    return memoryCost * timeCost <= maxArgon2Work;
  } catch {
    return false;
  }
}
