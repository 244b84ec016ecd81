import { hash } from 'node:crypto';
import { updateLetterSkippedWebform as contract, type Body, type Letter } from '@content-platform/contract';
import {
  actorOf,
  HttpError,
  invalidFields,
  type Database,
  type Handler,
  type Idempotency,
} from '@content-platform/chassis';
import { createLetterStore, type HistoryEntry } from '../letter-store.ts';
import { checkChangeable, checkIfMatch, etagOfLetter, letterNotFound } from '../replies.ts';

type SkipRequest = Body<typeof contract>;

interface Change extends HistoryEntry {
  skip: { reason: string | null } | null; // null: the webform is no longer skipped
}

/** Returns the change to make; undefined: the request changes nothing. Throws 422 for a missing or required webform. */
function changeOf(letter: Letter, { webform_id, skipped, reason: given }: SkipRequest): Change | undefined {
  const webform = letter.webforms.find((one) => one.webform_id === webform_id);
  if (!webform) {
    const message = `Letter ${letter.id} has no webform ${webform_id}.`;
    throw invalidFields([{ path: 'body.webform_id', message }]);
  }
  if (!skipped) {
    if (!webform.skipped) return undefined;
    return { event: 'webform_unskipped', details: { webform_id, reason: given || null }, skip: null };
  }
  if (webform.required) {
    throw new HttpError('webform_required', `Webform ${webform_id} of letter ${letter.id} is required.`);
  }
  // Without a reason in the request the current one stays.
  const reason = given === undefined ? webform.reason : given || null;
  if (!webform.skipped)
    return { event: 'webform_skipped', details: { webform_id, reason }, skip: { reason } };
  if (reason === webform.reason) return undefined;
  const details = { webform_id, from: webform.reason, to: reason };
  return { event: 'skip_reason_changed', details, skip: { reason } };
}

interface Deps {
  database: Database;
  idempotency: Idempotency;
}

export function updateLetterSkippedWebform({ database, idempotency }: Deps): Handler<typeof contract> {
  return ({ caller, body, header }) => {
    const ifMatch = header('if-match');
    const fingerprint = hash('sha256', JSON.stringify([body, ifMatch]), 'base64url');
    const request = { endpoint: contract, caller, key: header('idempotency-key'), fingerprint };

    async function update(query: Database['query']): Promise<Letter> {
      const letters = createLetterStore(query);
      const letter = await letters.lock(body.letter_id, caller.id);
      if (!letter) throw letterNotFound(body.letter_id);
      checkChangeable(letter);
      checkIfMatch(ifMatch, letter);
      const change = changeOf(letter, body);
      if (!change) return letter;
      const waitSeconds = await letters.secondsUntilChange(letter.id);
      if (waitSeconds > 0) {
        const message = 'The letter has changed too often in 24 hours. Retry later.';
        throw new HttpError('rate_limited', message, { headers: { 'Retry-After': String(waitSeconds) } });
      }
      await letters.setSkip(letter.id, body.webform_id, change.skip);
      return letters.saveChange(letter, actorOf(caller), [change]);
    }

    return idempotency.once(request, (storeReply) =>
      database.transaction(async (query) => {
        const letter = await update(query);
        const headers = { ETag: etagOfLetter(letter) };
        const reply = { status: 200 as const, body: { success: true as const, letter }, headers };
        await storeReply(query, reply);
        return reply;
      }),
    );
  };
}
