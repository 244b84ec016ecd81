import * as contract from '@content-platform/contract';
import {
  type AddToAudit,
  createIdempotency,
  createService,
  handle,
  type Database,
  type ServiceOptions,
} from '@content-platform/chassis';
import { createLetter } from './endpoints/create-letter.ts';
import { listLetters, readLetter, readLetterHistory } from './endpoints/read-letters.ts';
import { updateLetter } from './endpoints/update-letter.ts';
import { updateLetterSkippedWebform } from './endpoints/update-letter-skipped-webform.ts';
import { createLetterStore } from './letter-store.ts';
import type { FindUser } from './users.ts';

interface LettersDeps extends Omit<ServiceOptions, 'name'> {
  database: Database;
  addToAudit: AddToAudit;
  findUser: FindUser;
}

export function createLetters({ database, addToAudit, findUser, ...options }: LettersDeps) {
  const auditDeps = { addToAudit, logger: options.logger };
  const readDeps = { letters: createLetterStore(database.query), ...auditDeps };
  const idempotency = createIdempotency(database.query, 'letters');
  return createService({ name: 'letters', ...options }, [
    handle(contract.updateLetterSkippedWebform, updateLetterSkippedWebform({ database, idempotency })),
    handle(contract.createLetter, createLetter({ database, idempotency, findUser })),
    handle(contract.listLetters, listLetters(readDeps)),
    handle(contract.readLetter, readLetter(readDeps)),
    handle(contract.readLetterHistory, readLetterHistory(readDeps)),
    handle(contract.updateLetter, updateLetter({ database, ...auditDeps })),
  ]);
}
