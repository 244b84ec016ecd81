import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from './accounts.ts';
import { stack } from './stack.ts';

/**
 * Clears one record through the gateway as the content server. Returns keys_deleted. Throws if the platform refuses.
 */
export async function clear(model: contract.Model, id: number): Promise<number> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'machine');
  const answer = await call(gateway, contract.clearModel, { body: { model, id }, token });
  if (answer.error) throw new Error(`${answer.status} ${answer.error.error}`);
  return answer.body.keys_deleted;
}

export interface Read {
  status: number;
  cache: string | null;
  title: string | undefined;
  version: number | undefined;
}

/** Reads one record through the gateway as a user. */
export async function read(model: contract.Model, id: number): Promise<Read> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'user');
  const { status, headers, body } = await call(gateway, contract.readContent, {
    params: { model, id },
    token,
  });
  return { status, cache: headers.get('x-cache'), title: body?.title, version: body?.version };
}
