/** Seconds. What access tokens rest on, keys and revocations, is kept for longer. */
export const accessTokenLifetime = 900;
