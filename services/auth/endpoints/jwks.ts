import type { Handler } from '@content-platform/chassis';
import type { jwks as contract } from '@content-platform/contract';
import type { AuthContext } from '../context.ts';

export function jwks({ keys }: AuthContext): Handler<typeof contract> {
  return () => ({
    status: 200,
    body: { keys: keys.public },
    headers: { 'Cache-Control': 'public, max-age=300' },
  });
}
