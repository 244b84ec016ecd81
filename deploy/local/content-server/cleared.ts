import { listInvalidations, type Model } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { Problem } from '../problem.ts';
import { createAccessToken } from './access-token.ts';
import { keysDeleted } from './announce.ts';
import type { Settings } from './settings.ts';

const limit = 20;

/** Returns the newest cache clears of a record and of its model, a line for each. @throws Problem without a list */
export async function clearsOf(settings: Settings, model: Model, id: number): Promise<string[]> {
  const list = async () => {
    const token = await createAccessToken(settings).get();
    return call(settings.gateway, listInvalidations, { query: { model, id, limit }, token });
  };
  const { body, error } = await list().catch((failure: Error) => {
    throw new Problem(`The clears of ${model} ${id} could not be listed: ${failure.message}.`);
  });
  if (error) throw new Problem(`The clears of ${model} ${id} could not be listed: ${error.message}`);
  const lines = body.items.map(
    ({ at, source, target, keys_deleted: keys, requested_by: caller }) =>
      `${at}  ${source.padEnd(8)}  ${target}  ${keysDeleted(keys)}, requested by ${caller}`,
  );
  if (lines.length === 0) return [`${model} ${id} was not cleared in the last 30 days.`];
  return body.next_cursor === null ? lines : [...lines, `These are the newest ${limit}.`];
}
