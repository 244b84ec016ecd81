import { Secret, TOTP } from 'otpauth';
import { randomBytes } from 'node:crypto';

/** RFC 6238 with the values that every authenticator app supports. */
const totpOptions = { issuer: 'Content platform', algorithm: 'SHA1', digits: 6, period: 30 } as const;

/** Returns a random secret of 160 bits (RFC 4226 §4). */
export const newTotpSecret = () => randomBytes(20);

const secretOf = (bytes: Buffer) =>
  new Secret({ buffer: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) });

/** Returns the secret in base32, and the URI for a QR code. */
export function encodeTotpSecret(secret: Buffer, email: string): { secret: string; uri: string } {
  const totp = new TOTP({ ...totpOptions, label: email, secret: secretOf(secret) });
  return { secret: totp.secret.base32, uri: totp.toString() };
}

/**
 * Returns the time step of a valid code; undefined if the code is wrong. Accepts the codes of the previous and the next
 * 30 s, because clocks differ (RFC 6238 §5.2). `now` in ms.
 */
export function findTimeStep(secret: Buffer, code: string, now = Date.now()): number | undefined {
  const totp = new TOTP({ ...totpOptions, secret: secretOf(secret) });
  const delta = totp.validate({ token: code, timestamp: now, window: 1 });
  return delta === null ? undefined : Math.floor(now / 1000 / totpOptions.period) + delta;
}
