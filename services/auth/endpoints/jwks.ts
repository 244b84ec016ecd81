import type { Handler } from '@content-platform/chassis';
import type { jwks as contract } from '@content-platform/contract';
import type { SigningKeys } from '../keys/signing-keys.ts';

export function jwks({ keys }: { keys: SigningKeys }): Handler<typeof contract> {
  return () => ({
    status: 200,
    body: { keys: keys.public },
    headers: { 'Cache-Control': 'public, max-age=300' },
  });
}
