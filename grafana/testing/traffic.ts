import { newUser, type OwnUser } from '../../test/support/accounts.ts';
import { announce } from '../../test/support/events.ts';
import { download, newImage, uploaded } from '../../test/support/media.ts';
import { clear, read } from '../../test/support/platform.ts';
import { freshId, save } from '../../test/support/records.ts';
import { sendSlowRequest } from '../../test/support/slow-request.ts';
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

/** Causes the events that the panels need for a value, with its own user, records and files. */
export async function useEverything(): Promise<void> {
  const user = await newUser();
  await Promise.all([invalidations(), files(user), sendSlowRequest()]);
}
