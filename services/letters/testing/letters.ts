import { useStarted } from '../../../test/support/use-started.ts';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { createAuditClient, HttpError, type Caller, type ServiceFetch } from '@content-platform/chassis';
import { openTestService } from '@content-platform/chassis/testing/open-test-service.ts';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { createLetters } from '../app.ts';
import { createLetterStore, type NewLetter } from '../letter-store.ts';
import type { FindUser } from '../users.ts';

/** Converts a token to its caller: `user.<id>`, or `staff.<id>` with letters:write. */
function callerOf(token: string): Caller {
  const [, role, id] = /^(user|staff)\.(\d+)$/.exec(token) ?? [];
  if (!role) throw new HttpError('invalid_token', 'The access token is not one of ours.');
  const scopes = new Set<contract.Scope>(role === 'staff' ? ['letters:write'] : []);
  return { kind: 'user', id: Number(id), sessionId: '1', mustChangePassword: false, scopes };
}

const findFew: FindUser = async (whom) =>
  'id' in whom && /^[1-9]$/.test(whom.id) ? Number(whom.id) : undefined;

/** The default letter of a test: webform 1 is required, 2 and 3 are optional. */
const usual: NewLetter = {
  userId: 1,
  title: 'A letter',
  state: 'open',
  webforms: [1, 2, 3].map((webform_id) => ({ webform_id, required: webform_id === 1 })),
};

/** Starts the service in this process, on a new database. Users 1 to 9 exist by default. */
async function startLetters({ findUser = findFew }: { findUser?: FindUser } = {}) {
  const service = await openTestService('letters');
  const { database, logger, metrics } = service;
  const tokens = { verify: async (token: string) => callerOf(token) };
  const unavailable = 'http://127.0.0.1:1';
  const addToAudit = createAuditClient(unavailable, fetch as ServiceFetch, logger);
  const { origin, close } = await startHttpServer(
    createLetters({ database, addToAudit, findUser, tokens, logger, metrics }),
  );
  const store = createLetterStore(database.query);
  return {
    origin,
    databaseUrl: service.databaseUrl,
    database,
    log: service.log,
    async letter(difference: Partial<NewLetter> = {}): Promise<number> {
      return (await store.create({ ...usual, ...difference }, 'command'))!;
    },
    /** Reads the letter as its owner, user 1, or as the owner of `token`. */
    async read(id: number, token = 'user.1') {
      const { body, headers } = await call(origin, contract.readLetter, { params: { id }, token });
      return { letter: body!, etag: headers.get('etag')! };
    },
    async history(id: number) {
      const { body } = await call(origin, contract.readLetterHistory, { params: { id }, token: 'user.1' });
      return body!.items.map(({ event, actor, details }) => ({ event, actor, details }));
    },
    /** Lets the connection break after the next commit. */
    breakAfterNextCommit(): void {
      const { transaction } = database;
      database.transaction = async (work) => {
        database.transaction = transaction;
        await transaction(work);
        throw new Error('the connection broke after the commit');
      };
    },
    /** Skips webform 2 of the letter, unless `change` overrides it. */
    skip(
      id: number,
      change: Partial<contract.BodyInput<typeof contract.updateLetterSkippedWebform>> = {},
      headers: Record<string, string> = {},
      token = 'user.1',
    ) {
      const body = { letter_id: id, webform_id: 2, skipped: true, ...change };
      return call(origin, contract.updateLetterSkippedWebform, { body, headers, token });
    },
    /** Creates a letter of user 2, unless `change` overrides it. */
    create(
      change: Partial<contract.BodyInput<typeof contract.createLetter>> = {},
      headers: Record<string, string> = {},
    ) {
      const webforms = [{ webform_id: 2, required: true }];
      const body = { user_id: 2, title: 'A new letter', webforms, ...change };
      return call(origin, contract.createLetter, { body, headers, token: 'staff.9' });
    },
    update(id: number, body: contract.BodyInput<typeof contract.updateLetter>, ifMatch: string) {
      const headers = { 'If-Match': ifMatch };
      return call(origin, contract.updateLetter, { params: { id }, body, headers, token: 'staff.9' });
    },
    async stop() {
      close();
      await service.close();
    },
  };
}
type TestLetters = Awaited<ReturnType<typeof startLetters>>;

/** Starts the service before the tests of a file and stops it afterwards. Only tests and hooks may use the result. */
export function useLetters(options: { findUser?: FindUser } = {}): TestLetters {
  return useStarted(() => startLetters(options));
}
