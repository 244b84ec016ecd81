import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { letterStates, type LetterState } from '@content-platform/contract';
import { startLetters, type TestLetters } from '../testing.ts';

let letters: TestLetters;
beforeAll(async () => {
  letters = await startLetters();
});
afterAll(() => letters.stop());

const allowed: Record<LetterState, LetterState[]> = {
  draft: ['open', 'closed'],
  open: ['draft', 'sent', 'closed'],
  sent: ['closed'],
  closed: [],
};
const all = letterStates.flatMap((from) => letterStates.map((to) => [from, to] as const));

describe('the state', () => {
  test.each(all.filter(([from, to]) => allowed[from].includes(to)))('%s becomes %s', async (from, to) => {
    const id = await letters.letter({ state: from });
    const { etag } = await letters.read(id);
    const { status, body, headers } = await letters.update(id, { state: to }, etag);
    expect(status).toBe(200);
    const now = await letters.read(id);
    expect(now.letter).toMatchObject({ state: to, version: 2 });
    expect({ body, etag: headers.get('etag') }).toEqual({ body: now.letter, etag: now.etag });
    expect((await letters.history(id))[0]).toEqual({
      event: 'state_changed',
      actor: 'user:9',
      details: { from, to },
    });
  });

  test.each(all.filter(([from, to]) => from !== to && !allowed[from].includes(to)))(
    '%s does not become %s: 409 names both, and the title stays, too',
    async (from, to) => {
      const id = await letters.letter({ state: from });
      const { letter, etag } = await letters.read(id);
      const { error } = await letters.update(id, { state: to }, etag);
      expect(error).toMatchObject({
        error: 'state_change_not_allowed',
        code: 409,
        details: [
          { path: 'state', message: from },
          { path: 'body.state', message: to },
        ],
      });
      expect((await letters.update(id, { title: 'New', state: to }, etag)).error?.code).toBe(409);
      expect((await letters.read(id)).letter).toEqual(letter);
      expect(await letters.history(id)).toHaveLength(1);
    },
  );

  test.each(letterStates)('%s again, with the title it has: nothing new', async (state) => {
    const id = await letters.letter({ state });
    const { letter, etag } = await letters.read(id);
    const answer = await letters.update(id, { state, title: letter.title }, etag);
    expect(answer).toMatchObject({ status: 200, body: letter });
    expect(answer.headers.get('etag')).toBe(etag);
    expect(await letters.history(id)).toHaveLength(1);
  });
});

describe('the title', () => {
  test('changes with the state: one version, both in the history', async () => {
    const id = await letters.letter({ state: 'open' });
    const { body } = await letters.update(id, { title: 'New', state: 'sent' }, '*');
    expect(body).toMatchObject({ title: 'New', state: 'sent', version: 2 });
    const changes = (await letters.history(id)).slice(0, 2);
    expect(changes.map(({ event, details }) => ({ event, ...details }))).toEqual([
      { event: 'state_changed', from: 'open', to: 'sent' },
      { event: 'title_changed', from: 'A letter', to: 'New' },
    ]);
  });

  test.each(['sent', 'closed'] as const)('of a letter that is %s stays: 409', async (state) => {
    const id = await letters.letter({ state });
    const { etag } = await letters.read(id);
    for (const change of [{ title: 'New' }, { title: 'New', state: 'closed' as const }]) {
      const { error } = await letters.update(id, change, etag);
      expect(error).toMatchObject({ error: 'letter_closed', details: [{ path: 'state', message: state }] });
    }
    expect((await letters.read(id)).letter).toMatchObject({ title: 'A letter', state, version: 1 });
  });
});

describe('preconditions', () => {
  test('none: 428, for a letter that is there', async () => {
    const id = await letters.letter();
    expect((await letters.update(id, { title: 'New' })).error).toMatchObject({
      error: 'precondition_required',
      code: 428,
    });
    expect((await letters.update(9_000_000, { title: 'New' })).error?.error).toBe('not_found');
    expect((await letters.read(id)).letter.version).toBe(1);
  });

  test('an old one: 412, before the change is looked at', async () => {
    const id = await letters.letter();
    const { etag } = await letters.read(id);
    await letters.skip({ letter_id: id, webform_id: 2, skipped: true });
    for (const ifMatch of [etag, `W/${(await letters.read(id)).etag}`, '']) {
      const { error } = await letters.update(id, { title: 'New', state: 'closed' }, ifMatch);
      expect(error).toMatchObject({ error: 'precondition_failed', code: 412 });
    }
    expect((await letters.read(id)).letter).toMatchObject({ title: 'A letter', version: 2 });
  });

  test('many with the same at once: one lands, the others have 412', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await letters.letter();
      const { etag } = await letters.read(id);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => letters.update(id, { title: `Title ${n}` }, etag)),
      );
      const [done, ...others] = answers.toSorted((a, b) => a.status - b.status);
      expect(done!.status).toBe(200);
      expect(new Set(others.map(({ status }) => status))).toEqual(new Set([412]));
      expect((await letters.read(id)).letter).toEqual(done!.body);
      expect(await letters.history(id)).toHaveLength(2);
    }
  });

  test('sending and skipping at once: a sent letter says what it said', async () => {
    for (let round = 0; round < 10; round += 1) {
      const id = await letters.letter();
      const [sent, skipped] = await Promise.all([
        letters.update(id, { state: 'sent' }, '*'),
        letters.skip({ letter_id: id, webform_id: 2, skipped: true }),
      ]);
      expect(sent.status).toBe(200);
      const before = sent.body!.webforms[1]!.skipped;
      expect(skipped.status).toBe(before ? 200 : 409);
      expect((await letters.read(id)).letter.webforms).toEqual(sent.body!.webforms);
    }
  });
});
