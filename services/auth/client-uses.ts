import type { Database } from '@content-platform/chassis';

/**
 * Writes into the audit log that a machine client has got a token: once an hour for each address, for it may come for
 * one each time it has something to do. Throws what `query` throws.
 */
export async function noteClientUse(query: Database['query'], name: string, address: string): Promise<void> {
  const text = `INSERT INTO auth.audit (event, actor, address)
                SELECT 'client_token', $1::text, $2::inet
                WHERE NOT EXISTS (SELECT FROM auth.audit WHERE event = 'client_token' AND actor = $1 AND address = $2
                                    AND at > now() - interval '1 hour')`;
  await query('note_client_use', text, [`client:${name}`, address]);
}

/** Whether the client has got a token from this network (in CIDR form) in the last 30 days. Throws what `query` throws. */
export async function isNetworkOfClient(
  query: Database['query'],
  name: string,
  network: string,
): Promise<boolean> {
  const text = `SELECT FROM auth.audit WHERE event = 'client_token' AND actor = $1 AND address <<= $2
                  AND at > now() - interval '30 days' LIMIT 1`;
  return (await query('find_client_use', text, [`client:${name}`, network])).rowCount === 1;
}
