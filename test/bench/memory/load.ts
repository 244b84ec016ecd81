import { randomInt, randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { logIn, newUser, type OwnUser } from '../../support/accounts.ts';
import { register } from '../../support/devices.ts';
import { newLetter } from '../../support/letters.ts';
import { newImage, uploaded } from '../../support/media.ts';
import { clear } from '../../support/platform.ts';
import { freshId, save } from '../../support/records.ts';
import { stack } from '../../support/stack.ts';
import type { Kind } from '../open-loop.ts';

const [people, records] = [10, 500];
const webforms = [1, 2, 3];

interface Person extends OwnUser {
  letter: number;
  phone: string;
}

async function newPerson(): Promise<Person> {
  const user = await newUser();
  return { ...user, letter: await newLetter({ userId: user.id, webforms }), phone: randomUUID() };
}

const pick = <T>(from: readonly T[]): T => from[randomInt(from.length)]!;

/** Throws if the status is not among the expected ones. */
function expectStatus({ status }: { status: number }, ...expected: number[]): void {
  if (!expected.includes(status)) throw new Error(`${status} instead of ${expected.join(' or ')}`);
}

/** The requests of users, the content server and erring clients, with their shares of a day. */
export async function mixedLoad(): Promise<Kind[]> {
  const { gateway } = stack();
  const first = freshId();
  const ids = Array.from({ length: records }, (_, index) => first + index);
  for (const id of ids) await save('condition', id, 'Read', { text: 'x'.repeat(randomInt(10, 20_000)) });
  const crowd: Person[] = [];
  while (crowd.length < people) crowd.push(await newPerson());
  /** Access tokens last for 15 minutes. */
  const renew = async (one: Person) => Object.assign(one, await logIn(one.email, one.password));
  const read = (id: number, token: string, headers: Record<string, string> = {}) =>
    call(gateway, contract.readContent, { params: { model: 'condition', id }, token, headers });

  const kind = (name: string, weight: number, send: (one: Person) => Promise<void>): Kind => ({
    name,
    weight,
    send: () => send(pick(crowd)),
  });
  return [
    kind('read', 50, async ({ token }) => expectStatus(await read(pick(ids), token), 200)),
    kind('read again', 15, async ({ token }) => {
      const id = pick(ids);
      const { headers } = await read(id, token);
      expectStatus(await read(id, token, { 'If-None-Match': headers.get('etag')! }), 304);
    }),
    kind('clear', 10, async () => void (await clear('condition', pick(ids)))),
    kind('log in', 1, async (one) => void (await renew(one))),
    kind('upload', 1, async ({ token }) => void (await uploaded(token, await newImage()))),
    kind('letters', 5, async ({ token }) =>
      expectStatus(await call(gateway, contract.listLetters, { token }), 200),
    ),
    kind('skip a webform', 5, async ({ token, letter }) => {
      const body = { letter_id: letter, webform_id: 2, skipped: Math.random() < 0.5 };
      expectStatus(await call(gateway, contract.updateLetterSkippedWebform, { token, body }), 200);
    }),
    kind('register a device', 5, async ({ token, phone }) => void (await register(token, { token: phone }))),
    kind('what is not there', 4, async ({ token }) => expectStatus(await read(freshId(), token), 404)),
    kind('without a token', 2, async () => expectStatus(await call(gateway, contract.me), 401)),
    kind('an unknown path', 2, async () => expectStatus(await fetch(`${gateway}/${randomUUID()}`), 404)),
  ];
}
