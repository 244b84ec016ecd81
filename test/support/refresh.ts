import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { stack } from './stack.ts';

/** Asks for new tokens with a refresh token; `reason` says why there are none. */
export async function refresh(refresh_token: string) {
  const answer = await call(stack().gateway, contract.token, {
    body: { grant_type: 'refresh_token', refresh_token },
  });
  const reason = answer.error?.details?.find(({ path }) => path === 'reason')?.message;
  return { status: answer.status, body: answer.body, reason };
}
