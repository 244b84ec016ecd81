import { setTimeout as sleep } from 'node:timers/promises';
import { updateLetterSkippedWebform } from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser } from './accounts.ts';
import { newLetter } from './letters.ts';
import { database } from './records.ts';
import { stack } from './stack.ts';
import { until } from './wait.ts';

/** Sends a request for a letter that another session has locked, so that the request and its query are slow. */
export async function sendSlowRequest(): Promise<void> {
  const { id, token } = await newUser();
  const letter = await newLetter({ userId: id });
  const client = await database().connect();
  try {
    await client.query('BEGIN');
    await client.query('SELECT FROM letters.letter WHERE id = $1 FOR UPDATE', [letter]);
    const body = { letter_id: letter, webform_id: 2, skipped: true };
    const asked = call(stack().gateway, updateLetterSkippedWebform, { body, token });
    await until('it waits for the lock', async () => {
      const waiting = 'SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid';
      return (await client.query(waiting)).rowCount! > 0;
    });
    await sleep(800);
    await client.query('COMMIT');
    const { status, error } = await asked;
    if (error) throw new Error(`the letter returned ${status}`);
  } finally {
    client.release();
  }
}
