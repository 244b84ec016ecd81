import { describe, expect, test } from '@jest/globals';
import type { z } from 'zod';
import { clearModel } from './cache-admin.ts';
import { endpoints } from './endpoints.ts';
import { id, idSegment, singleLineText, pageQuery, multiLineText, time } from './schemas.ts';

const takes = (schema: z.ZodType, value: unknown) => schema.safeParse(value).success;

describe('strings', () => {
  test.each(['a', '😀é漢', 'x'.repeat(20)])('accepts %j as multi-line text', (value) => {
    expect(takes(multiLineText(1, 20), value)).toBe(true);
  });

  const halves = ['\ud83d', '\ude00', 'a\ude00\ud83d'];
  test.each(['', 'x'.repeat(21), 'a\0b', ...halves, 12, null, ['a'], {}])(
    'refuses %j as multi-line text',
    (value) => {
      expect(takes(multiLineText(1, 20), value)).toBe(false);
    },
  );

  test.each(['Ann Archer', 'محمد\u200cرضا'])('accepts %j as single-line text', (value) => {
    expect(takes(singleLineText(1, 20), value)).toBe(true);
  });

  test.each(['', ' \u3000', 'a\nb', '\u001b[2J', 'evil\u202efdp.exe', 'a\u2028b'])(
    'refuses %j as single-line text',
    (value) => expect(takes(singleLineText(1, 20), value)).toBe(false),
  );
});

describe('IDs', () => {
  test.each([1, 12, Number.MAX_SAFE_INTEGER])('accepts %s in a body and in a path', (value) => {
    expect(takes(id, value)).toBe(true);
    expect(idSegment.parse(String(value))).toBe(value);
  });

  test.each([0, -1, 1.5, 2 ** 53, 1e300, Number.NaN, Infinity, '12', '', null, true, [1], {}, undefined])(
    'refuses %j in a body',
    (value) => expect(takes(id, value)).toBe(false),
  );

  test.each(
    ['', '0', '-1', '+1', '01', '1.5', '1.0', '1e3', '0x1', ' 1', '1 ', '1\n', '١', '９'].concat(
      '9007199254740992',
      '9999999999999999',
      '99999999999999999',
      '1'.repeat(10_000),
      'NaN',
      '__proto__',
    ),
  )('refuses %j in a path', (value) => expect(takes(idSegment, value)).toBe(false));
});

test.each(['2026-01-31T09:30:00.000Z', '2026-01-31T09:30:00Z'])('accepts %j as a time', (value) => {
  expect(takes(time, value)).toBe(true);
});

test.each(['2026-01-31T09:30:00+01:00', '2026-02-30T09:30:00Z', '2026-01-31', 1_769_000_000])(
  'refuses %j as a time',
  (value) => expect(takes(time, value)).toBe(false),
);

test.each(['1', '100'])('accepts limit=%j', (value) => expect(takes(pageQuery.limit, value)).toBe(true));

test.each(['0', '101', '-1', '1.5', '', '1e1', ['1', '2']])('refuses limit=%j', (value) => {
  expect(takes(pageQuery.limit, value)).toBe(false);
});

const withBodies = endpoints.flatMap(({ name, body }) => (body ? [[name, body.schema] as const] : []));

/** RFC 6749 and OpenID Connect require that unknown parameters are ignored. */
const lenient = new Set(['token', 'backchannelLogout']);

describe('bodies', () => {
  const depth = 500_000;
  const nested = JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;

  test.each(withBodies)('%s accepts only objects and refuses deep nesting', (_, schema) => {
    for (const value of [null, [], '', 'x', 0, 12, true, undefined, nested])
      expect(takes(schema, value)).toBe(false);
  });

  test.each(withBodies.filter(([name]) => !lenient.has(name)))('%s refuses unknown fields', (_, schema) => {
    const issues = (value: unknown) => schema.safeParse(value).error?.issues.map(({ code }) => code) ?? [];
    expect(issues({ surprise: 1 })).toContain('unrecognized_keys');
    expect(issues({ surprise: nested })).toContain('unrecognized_keys');
    // JSON.parse creates __proto__ as an own property, like the parser of request bodies.
    const poisoned = JSON.parse(
      '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
    ) as unknown;
    expect(issues(poisoned)).toContain('unrecognized_keys');
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('refuses a field of a megabyte or deep nesting in any position', () => {
    const schema = clearModel.body.schema;
    expect(takes(schema, { model: 'webform', id: 1 })).toBe(true);
    for (const value of ['x'.repeat(1_000_000), nested, { id: nested }]) {
      expect(takes(schema, { model: value, id: 1 })).toBe(false);
      expect(takes(schema, { model: 'webform', id: value })).toBe(false);
    }
  });
});
