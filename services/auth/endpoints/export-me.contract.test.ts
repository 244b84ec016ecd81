import { expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newAddress, newUser, type OwnUser } from '../../../test/support/accounts.ts';
import { newPushToken, register } from '../../../test/support/devices.ts';
import { newLetter } from '../../../test/support/letters.ts';
import { newImage, uploaded } from '../../../test/support/media.ts';
import { database } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { userObjects } from '../../../test/support/user-objects.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

const { gateway } = stack();

/** Creates data in every service, so that the example in the API documents has all fields. */
async function fill(user: OwnUser) {
  const { id, email, password, token } = user;
  const known = ['/api/sessions', '/api/devices', '/api/letters', '/api/media'];
  for (const [path, make] of Object.entries(userObjects)) if (!known.includes(path)) await make(user);
  const pushToken = newPushToken();
  const device = await register(token, { token: pushToken, platform: 'ios', app_version: '1.2' });
  const letter = await newLetter({ userId: id });
  const skip = { letter_id: letter, webform_id: 2, skipped: true, reason: 'not mine' };
  await call(gateway, contract.updateLetterSkippedWebform, { token, body: skip });
  const file = await uploaded(token, await newImage());
  await database().query(
    `INSERT INTO auth.identity (issuer, subject, user_id, email, email_verified)
     VALUES ('https://idp.example', $1, $2, $3, true)`,
    [`subject-${id}`, id, email],
  );
  const headers = { 'X-Forwarded-For': newAddress() };
  const ended = await call(gateway, contract.login, { body: { email, password }, headers });
  await call(gateway, contract.logout, { token: ended.body!.token, body: {} });
  return { pushToken, device: device.id, letter, file };
}

describeEndpoint(contract.exportMe, {}, ({ ask }) => {
  test('returns data of every service that stores data of users, and none of another user', async () => {
    const [own, others] = await Promise.all(
      [await newUser(), await newUser()].map(async (user) => {
        for (const make of Object.values(userObjects)) await make(user);
        const { user: _, ...fields } = (await ask({ token: user.token })).body!;
        return Object.entries(fields).map(([field, list]) => ({ field, ids: list.map(({ id }) => id) }));
      }),
    );
    for (const [index, { field, ids }] of own!.entries()) {
      expect([field, ids]).not.toEqual([field, []]);
      expect([field, ids.filter((id) => others![index]!.ids.includes(id))]).toEqual([field, []]);
    }
  });

  test('returns everything that the platform stores about the user, and nothing of another user', async () => {
    const [user, other] = await Promise.all([newUser(), newUser()]);
    const { pushToken, device, letter, file } = await fill(user);
    const others = await fill(other);
    const { status, headers, body } = await ask({ token: user.token });
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body!.user).toMatchObject({
      id: user.id,
      email: user.email,
      identities: [{ issuer: 'https://idp.example', subject: `subject-${user.id}`, email: user.email }],
    });
    const sessions = body!.sessions.map(({ current, active }) => ({ current, active }));
    expect(sessions).toEqual([
      { current: false, active: false },
      { current: true, active: true },
    ]);
    expect(body!.devices).toMatchObject([{ id: device, platform: 'ios', app_version: '1.2' }]);
    expect(body!.letters).toMatchObject([
      {
        id: letter,
        user_id: user.id,
        webforms: [{ webform_id: 1 }, { webform_id: 2, reason: 'not mine' }, { webform_id: 3 }],
        history: [{ event: 'webform_skipped', actor: `user:${user.id}` }, { event: 'created' }],
      },
    ]);
    expect(body!.files).toMatchObject([{ id: file.id }]);
    const text = JSON.stringify(body);
    for (const foreign of [other.email, `subject-${other.id}`, `"id":${others.letter},"user_id"`, pushToken])
      expect(text).not.toContain(foreign);
    const { url, bytes } = body!.files[0]!;
    const download = await fetch(url, { headers: { Authorization: `Bearer ${user.token}` } });
    expect([download.status, (await download.arrayBuffer()).byteLength]).toEqual([200, bytes]);
  });

  test('returns every letter of a user with several pages of letters and history', async () => {
    const user = await newUser();
    await database().query(
      `WITH made AS (INSERT INTO letters.letter (user_id, title, state)
                     SELECT $1, 'A letter', 'sent' FROM generate_series(1, 301) RETURNING id)
       INSERT INTO letters.history (letter_id, at, event, actor, details)
       SELECT id, now(), 'title_changed', 'command', '{}'
       FROM made, LATERAL generate_series(1, CASE id % 100 WHEN 7 THEN 600 WHEN 8 THEN 0 ELSE 1 END)`,
      [user.id],
    );
    const { body } = await ask({ token: user.token });
    const ids = body!.letters.map(({ id }) => id);
    expect(ids).toHaveLength(301);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    for (const { id, history } of body!.letters)
      expect(history).toHaveLength(id % 100 === 7 ? 600 : id % 100 === 8 ? 0 : 1);
  });
});
