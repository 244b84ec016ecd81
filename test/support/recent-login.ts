import { database } from './records.ts';

/** Makes the session of an access token 16 minutes old, so that it is no recent login any more. */
export async function ageSession(token: string): Promise<void> {
  const [, claims] = token.split('.', 2) as [string, string];
  const { sid } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sid: string };
  const text = `UPDATE auth.session SET created_at = now() - interval '16 minutes', reauthenticated_at = NULL WHERE id = $1`;
  await database().query(text, [sid]);
}
