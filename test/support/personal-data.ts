import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { redisKeys, tables } from '../secrets/places.ts';
import { latin1 } from '../secrets/secret-patterns.ts';
import { accepted, logIn, newUser, type OwnUser, tokenOf } from './accounts.ts';
import { newPushToken, register } from './devices.ts';
import { newImage, newPdf, uploaded } from './media.ts';
import { database, freshId } from './records.ts';
import { stack } from './stack.ts';
import { codeOf, enrol } from './totp.ts';
import { userObjects } from './user-objects.ts';

export interface Person extends OwnUser {
  secret: string;
  /** Regular expression of everything that identifies the person or belongs to the person. */
  traces: RegExp;
}

/** Creates a user who has data in every place where the platform stores data of users. */
export async function newPerson(): Promise<Person> {
  const { gateway } = stack();
  // The ids of other rows do not contain it.
  await database().query(`SELECT setval('auth.user_id_seq', $1)`, [freshId() + 10 ** 15]);
  // An admin leaves traces in most places. The stack is the test's own, so no other test is about the last admin.
  const user = await newUser('admin' as 'sre');
  const { id, email, token } = user;
  for (const make of Object.values(userObjects)) await make(user);
  const staff = await tokenOf(gateway, 'admin');
  const [title, push, pdf] = [`Letter ${randomUUID()}`, newPushToken(), newPdf()];
  await logIn(email, 'a wrong password').catch(() => undefined);
  await register(token, { token: push });
  const image = await uploaded(token, await newImage(), `${randomUUID()}.jpg`);
  await uploaded(token, pdf, 'a.pdf');
  const headers = { 'Idempotency-Key': randomUUID() };
  const body = { user_id: id, title, webforms: [{ webform_id: 1, required: false }] };
  const letter = await accepted(call(gateway, contract.createLetter, { token: staff, body, headers }));
  const params = { id: letter.body!.id };
  const patch = { token: staff, params, body: { state: 'open' as const }, headers: { 'If-Match': '*' } };
  await accepted(call(gateway, contract.updateLetter, patch));
  const skip = { letter_id: params.id, webform_id: 1, skipped: true, reason: title };
  const skipped = { token, body: skip, headers: { 'Idempotency-Key': randomUUID() } };
  await accepted(call(gateway, contract.updateLetterSkippedWebform, skipped));
  // The history of another user's letter names the author.
  const other = { ...body, user_id: (await accepted(call(gateway, contract.me, { token: staff }))).body!.id };
  await accepted(call(gateway, contract.createLetter, { token, body: { ...other, title: 'Other' } }));
  await accepted(call(gateway, contract.clearModel, { token, body: { model: 'webform', id: 1 } }));
  const identity = `INSERT INTO auth.identity (issuer, subject, user_id) VALUES ('x', $1, $2)`;
  await database().query(identity, [email, id]);
  const code = `INSERT INTO auth.identity_code (hash, user_id, code_challenge, issuer, id_token, suborgs)
                VALUES (sha256($1), $2, '', '', $1, '{}')`;
  await database().query(code, [email, id]);
  const reset = `INSERT INTO auth.password_reset (user_id, address, next_attempt_at) VALUES ($1, '192.0.2.1', NULL)`;
  await database().query(reset, [id]);
  const { secret } = await enrol(gateway, token);
  // Leaves an unfinished login.
  await logIn(email, user.password).catch(() => undefined);
  const marker = pdf.toString().split('\n')[1]!;
  const words = [
    `\\b${id}\\b`,
    email,
    Buffer.from(email).toString('hex'),
    title,
    push,
    image.checksum,
    marker,
  ];
  return { ...user, secret, traces: new RegExp(words.join('|').replaceAll('%', '.')) };
}

export async function deleteAccount({ token, password, secret }: Person): Promise<void> {
  const body = { current_password: password, code: codeOf(secret) };
  await accepted(call(stack().gateway, contract.deleteMe, { token, body }));
}

export const storedFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
    .toSorted();

/** Returns the tables and the files in the folder that contain traces of the person, and `Redis` if its keys do. */
export async function placesWith({ traces }: Person, folder: string): Promise<string[]> {
  const { postgres, logs } = stack();
  const places = [
    ...(await tables('platform', postgres)),
    ...(await tables('logs', logs)),
    ...(await redisKeys()),
    ...storedFiles(folder).map((path) => ({ name: path, content: readFileSync(path) })),
  ];
  const found = places.filter(({ content }) => traces.test(latin1(content)));
  // The name of a column starts with its database.
  const names = found.map(({ name }) => name.replace(/^(?:platform|logs) (.+)\.\w+$/, '$1'));
  return [...new Set(names)].toSorted();
}
