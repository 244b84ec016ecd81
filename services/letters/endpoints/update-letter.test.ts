import { describe, expect, test } from '@jest/globals';
import { letterStates, type LetterState } from '@content-platform/contract';
import { useLetters } from '../testing/letters.ts';

const letters = useLetters();

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
    '%s does not become %s: returns 409 with both states and keeps the title',
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

  test.each(letterStates)('repeating the state %s and the title changes nothing', async (state) => {
    const id = await letters.letter({ state });
    const { letter, etag } = await letters.read(id);
    const answer = await letters.update(id, { state, title: letter.title }, etag);
    expect(answer).toMatchObject({ status: 200, body: letter });
    expect(answer.headers.get('etag')).toBe(etag);
    expect(await letters.history(id)).toHaveLength(1);
  });
});

describe('the title', () => {
  test('changes together with the state: one version, two history entries', async () => {
    const id = await letters.letter({ state: 'open' });
    const { body } = await letters.update(id, { title: 'New', state: 'sent' }, '*');
    expect(body).toMatchObject({ title: 'New', state: 'sent', version: 2 });
    const changes = (await letters.history(id)).slice(0, 2);
    expect(changes.map(({ event, details }) => ({ event, ...details }))).toEqual([
      { event: 'state_changed', from: 'open', to: 'sent' },
      { event: 'title_changed', from: 'A letter', to: 'New' },
    ]);
  });

  test.each(['sent', 'closed'] as const)(
    'cannot change in a letter that is %s: returns 409',
    async (state) => {
      const id = await letters.letter({ state });
      const { etag } = await letters.read(id);
      for (const change of [{ title: 'New' }, { title: 'New', state: 'closed' as const }]) {
        const { error } = await letters.update(id, change, etag);
        expect(error).toMatchObject({ error: 'letter_closed', details: [{ path: 'state', message: state }] });
      }
      expect((await letters.read(id)).letter).toMatchObject({ title: 'A letter', state, version: 1 });
    },
  );
});

describe('preconditions', () => {
  test('returns 412 for an outdated If-Match before it checks the change', async () => {
    const id = await letters.letter();
    const { etag } = await letters.read(id);
    await letters.update(id, { state: 'sent' }, etag);
    for (const ifMatch of [etag, `W/${etag}`, '']) {
      const { error } = await letters.update(id, { title: 'New', state: 'open' }, ifMatch);
      expect(error).toMatchObject({ error: 'precondition_failed', code: 412 });
    }
    expect((await letters.read(id)).letter).toMatchObject({ title: 'A letter', version: 2 });
  });

  test('a concurrent skip never changes a sent letter', async () => {
    for (let round = 0; round < 10; round += 1) {
      const id = await letters.letter();
      const [sent, skipped] = await Promise.all([
        letters.update(id, { state: 'sent' }, '*'),
        letters.skip(id),
      ]);
      expect(sent.status).toBe(200);
      const before = sent.body!.webforms[1]!.skipped;
      expect(skipped.status).toBe(before ? 200 : 409);
      expect((await letters.read(id)).letter.webforms).toEqual(sent.body!.webforms);
    }
  });
});
