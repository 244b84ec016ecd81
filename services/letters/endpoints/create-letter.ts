import { hash } from 'node:crypto';
import { createLetter as contract } from '@content-platform/contract';
import {
  actorOf,
  invalidFields,
  type Database,
  type Handler,
  type Idempotency,
} from '@content-platform/chassis';
import { createLetterStore } from '../letter-store.ts';
import { etagOfLetter } from '../replies.ts';
import type { FindUser } from '../users.ts';

interface Deps {
  database: Database;
  idempotency: Idempotency;
  findUser: FindUser;
}

export function createLetter({ database, idempotency, findUser }: Deps): Handler<typeof contract> {
  return ({ caller, body: { user_id: userId, title, webforms }, header }) => {
    const fingerprint = hash('sha256', JSON.stringify([userId, title, webforms]), 'base64url');
    const request = { endpoint: contract, caller, key: header('idempotency-key'), fingerprint };
    return idempotency.once(request, async (storeReply) => {
      if ((await findUser({ id: String(userId) })) === undefined)
        throw invalidFields([{ path: 'body.user_id', message: `User ${userId} was not found.` }]);
      return database.transaction(async (query) => {
        const letters = createLetterStore(query);
        const id = await letters.create({ userId, title, state: 'draft', webforms }, actorOf(caller));
        const letter = (await letters.find(id!, 'any'))!;
        const reply = { status: 201 as const, body: letter, headers: { ETag: etagOfLetter(letter) } };
        await storeReply(query, reply);
        return reply;
      });
    });
  };
}
