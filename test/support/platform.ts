import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { accepted, tokenOf } from './accounts.ts';
import { stack } from './stack.ts';

/** Returns the endpoint's path with valid parameters; no object has the id. */
export const samplePath = ({ path }: contract.Endpoint): string =>
  path.replace(':model', 'webform').replace(':variant', 'thumb').replace(/:\w+/g, '9007199254740991');

/** Clears a record as the content server and returns keys_deleted. Throws if the platform refuses. */
export async function clear(model: contract.Model, id: number): Promise<number> {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'machine');
  const { body } = await accepted(call(gateway, contract.clearModel, { body: { model, id }, token }));
  return body.keys_deleted;
}

export async function read(model: contract.Model, id: number) {
  const { gateway } = stack();
  const token = await tokenOf(gateway, 'user');
  const options = { params: { model, id }, token };
  const { status, headers, body } = await call(gateway, contract.readContent, options);
  return { status, cache: headers.get('x-cache'), title: body?.title, version: body?.version };
}
export type Read = Awaited<ReturnType<typeof read>>;
