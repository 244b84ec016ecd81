/** Lifetime of access tokens in seconds. Signing keys and revocations are kept for longer. */
export const accessTokenLifetime = 900;
