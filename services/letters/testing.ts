// What the tests of this service share.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import {
  createLogger,
  createMetrics,
  createDatabase,
  createSlowLog,
  HttpError,
  type Caller,
} from '@content-platform/chassis';
import { createTestDatabase } from '../../test/support/test-database.ts';
import { createLetters } from './app.ts';
import { createLetterStore, type NewLetter } from './letter-store.ts';
import { migrateLetters } from './schema.ts';

/** Tokens are `user.<id>` and `staff.<id>`, who has letters:write. */
function callerOf(token: string): Caller {
  const [, role, id] = /^(user|staff)\.(\d+)$/.exec(token) ?? [];
  if (!role) throw new HttpError(401, 'invalid_token', 'The access token is not one of ours.');
  const scopes = new Set<contract.Scope>(role === 'staff' ? ['letters:write'] : []);
  return { kind: 'user', id: Number(id), sessionId: '1', mustChangePassword: false, scopes };
}

/** Of a letter that a test makes: webform 1 is required, 2 and 3 are not. */
const usual: NewLetter = {
  userId: 1,
  title: 'A letter',
  state: 'open',
  webforms: [1, 2, 3].map((webform_id) => ({ webform_id, required: webform_id === 1 })),
};

/** The service in this process, on a database of its own. */
export async function startLetters() {
  const own = await createTestDatabase();
  const { url } = own;
  const logger = createLogger('letters', 'error');
  await migrateLetters(url, logger);
  const metrics = createMetrics('letters');
  const slowLog = createSlowLog(undefined, metrics, logger);
  const database = createDatabase({ url, logger, metrics, slowLog, slowQueryMs: 60_000 });
  const tokens = { verify: async (token: string) => callerOf(token) };
  const server = createServer(createLetters({ database, tokens, logger, metrics }));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = createLetterStore(database.query);
  return {
    origin,
    /** For what opens it itself: commands. */
    databaseUrl: url,
    database,
    store,
    /** Makes a letter; returns its id. */
    async letter(difference: Partial<NewLetter> = {}): Promise<number> {
      return (await store.create({ ...usual, ...difference }, 'command'))!;
    },
    /** The letter as its owner, user 1, or somebody else reads it. */
    async read(id: number, token = 'user.1') {
      const { body, headers } = await call(origin, contract.readLetter, { params: { id }, token });
      return { letter: body!, etag: headers.get('etag')! };
    },
    async history(id: number) {
      const { body } = await call(origin, contract.readLetterHistory, { params: { id }, token: 'user.1' });
      return body!.items.map(({ event, actor, details }) => ({ event, actor, details }));
    },
    skip(
      body: contract.BodyInput<typeof contract.updateLetterSkippedWebform>,
      headers: Record<string, string> = {},
      token = 'user.1',
    ) {
      return call(origin, contract.updateLetterSkippedWebform, { body, headers, token });
    },
    update(id: number, body: contract.BodyInput<typeof contract.updateLetter>, ifMatch?: string) {
      const headers: Record<string, string> = ifMatch === undefined ? {} : { 'If-Match': ifMatch };
      return call(origin, contract.updateLetter, { params: { id }, body, headers, token: 'staff.9' });
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await database.close();
      await own.drop();
    },
  };
}
export type TestLetters = Awaited<ReturnType<typeof startLetters>>;
