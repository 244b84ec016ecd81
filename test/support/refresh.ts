import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { stack } from './stack.ts';

/** Refreshes tokens; `reason` is the error's reason. */
export async function refresh(refresh_token: string) {
  const answer = await call(stack().gateway, contract.token, {
    body: { grant_type: 'refresh_token', refresh_token },
  });
  const reason = answer.error?.details?.find(({ path }) => path === 'reason')?.message;
  return { status: answer.status, body: answer.body, reason };
}
