import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser, type OwnUser } from '../../test/support/accounts.ts';
import { announce } from '../../test/support/events.ts';
import { newLetter } from '../../test/support/letters.ts';
import { download, newImage, uploaded } from '../../test/support/media.ts';
import { clear, read } from '../../test/support/platform.ts';
import { database, freshId, save } from '../../test/support/records.ts';
import { stack } from '../../test/support/stack.ts';
import { until } from '../../test/support/wait.ts';

/** Changes a record and announces it over HTTP and Kafka. Resolves when reads return the new version. */
async function invalidations(): Promise<void> {
  const id = freshId();
  for (const [title, tell] of [
    ['By HTTP', () => clear('webform', id)],
    ['By Kafka', () => announce(JSON.stringify({ model: 'webform', id }), `webform:${id}`)],
  ] as const) {
    await save('webform', id, 'Old');
    await read('webform', id);
    await save('webform', id, title);
    await tell();
    await until(`${title} is read`, async () => (await read('webform', id)).title === title);
  }
}

async function files({ token }: OwnUser): Promise<void> {
  const { variants } = await uploaded(token, await newImage());
  const { status } = await download(new URL(variants[0]!.url, stack().gateway).href, token);
  if (status !== 200) throw new Error(`the download of the variant returned ${status}`);
}

/** Sends a request for a letter that another session has locked, so that the request and its query are slow. */
async function slowRequest({ id, token }: OwnUser): Promise<void> {
  const letter = await newLetter({ userId: id });
  const client = await database().connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM letters.letter WHERE id = $1 FOR UPDATE', [letter]);
    const body = { letter_id: letter, webform_id: 2, skipped: true };
    const since = performance.now();
    const asked = call(stack().gateway, contract.updateLetterSkippedWebform, { body, token });
    // Far over the limits for slow requests and queries, regardless of the time before the query.
    await until('the request is slow', () => performance.now() - since > 1_200);
    await client.query('COMMIT');
    const answer = await asked;
    if (answer.error) throw new Error(`the letter returned ${answer.status}`);
  } finally {
    client.release();
  }
}

/** Causes each event that the dashboards show, with its own records, files and letters. */
export async function useEverything(): Promise<void> {
  const user = await newUser();
  await Promise.all([invalidations(), files(user), slowRequest(user)]);
}
