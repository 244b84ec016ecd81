import { parseArgs } from 'node:util';
import { createLetter as contract } from '@content-platform/contract';
import type { Database } from '@content-platform/chassis';
import { createLetterStore, type NewLetter } from '../letter-store.ts';
import { commandActor } from '../letters.ts';
import type { FindUser } from '../users.ts';

const { title, webforms: webformList } = contract.body.schema.shape;

function parseWebform(given: string): NewLetter['webforms'][number] {
  const [, digits, required] = /^([1-9]\d{0,15})(:required)?$/.exec(given) ?? [];
  const webform_id = Number(digits);
  if (Number.isSafeInteger(webform_id)) return { webform_id, required: required !== undefined };
  throw new Error(`--webform must be an id, or an id and :required, not ${given}.`);
}

interface CreateLetterDeps {
  open: () => Promise<Database>;
  findUser: FindUser;
}

/** Runs `create-letter EMAIL-or-USER-ID TITLE [--webform ID[:required]]…` and returns the text to print. */
export async function createLetter(args: string[], { open, findUser }: CreateLetterDeps): Promise<string> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { webform: { type: 'string', multiple: true, default: [] } },
  });
  const [whom, name, ...more] = positionals;
  if (whom === undefined || name === undefined || more.length > 0) {
    throw new Error('Give EMAIL-or-USER-ID and TITLE; a title of several words in quotes.');
  }
  if (!title.safeParse(name).success) throw new Error('TITLE must have 1 to 200 visible characters.');
  const { data: webforms, error } = webformList.safeParse(values.webform.map(parseWebform));
  if (error) throw new Error(error.issues[0]!.message);
  const userId = await findUser(/^\d+$/.test(whom) ? { id: whom } : { email: whom });
  if (userId === undefined) throw new Error(`User ${whom} was not found.`);
  const database = await open();
  try {
    const letter = { userId, title: name, state: 'draft', webforms } as const;
    const id = await createLetterStore(database.query).create(letter, commandActor);
    const count = `${webforms.length} webform${webforms.length === 1 ? '' : 's'}`;
    return `Created letter ${id} of user ${userId}: a draft with ${count}.`;
  } finally {
    await database.close();
  }
}
