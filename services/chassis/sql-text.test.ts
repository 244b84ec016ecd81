import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withoutValues } from './sql-text.ts';

test.each([
  ['SELECT id, $1::text FROM a.b2 WHERE c = ANY ($12)', 'SELECT id, $1::text FROM a.b2 WHERE c = ANY ($12)'],
  ['SELECT "a 1", "it""s" FROM état', 'SELECT "a 1", "it""s" FROM état'],
  ["WHERE email = 'a@example.com' AND n=1", 'WHERE email = ? AND n=?'],
  ["VALUES ('it''s', -1.5e-3, .5, 1_000, 0xFF, 5::int)", 'VALUES (?, -?, ?, ?, ?, ?::int)'],
  ["SELECT 'a\\', 'b'", 'SELECT ?, ?'],
  ["SELECT E'a\\'b', e'\\\\', B'01', X'ff', N'x', U&'\\0061', \"e\"'x'", 'SELECT ?, ?, ?, ?, ?, ?, "e"?'],
  ['DO $$ BEGIN PERFORM 1; END $$', 'DO ?'],
  ["DO $a$ SELECT $$x$$, 'y' $a$ LANGUAGE plpgsql", 'DO ? LANGUAGE plpgsql'],
  ["COPY t (a) FROM '/tmp/secret' WITH (DELIMITER ';')", 'COPY t (a) FROM ? WITH (DELIMITER ?)'],
  ["ALTER ROLE x PASSWORD 'y' VALID UNTIL '2030-01-01'", 'ALTER ROLE x PASSWORD ? VALID UNTIL ?'],
  ["SELECT 1 -- it's\n, 'a'", 'SELECT ? \n, ?'],
  ["SELECT /* it's */ a /* b /* c */ ' */, 'd'", 'SELECT  a , ?'],
  ["interval '5 s' * 2", 'interval ? * ?'],
])('%s', (statement, expected) => {
  expect(withoutValues(statement)).toBe(expected);
});

test.each([
  "SELECT 'secret",
  "SELECT E'secret\\",
  'SELECT $$secret',
  'DO $a$ secret $b$',
  'SELECT "secret',
  '/* secret',
])('what has no end shows nothing: %s', (statement) => {
  expect(withoutValues(statement)).not.toContain('secret');
});

test('whatever a value is, in whichever form: it does not show, and what follows it does', () => {
  const forms: ((value: string) => string)[] = [
    (value) => `'${value.replaceAll("'", "''")}'`,
    (value) => `E'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
    (value) => `$of$${value.replaceAll('$', '')}$of$`,
    (value) => `/* ${value.replaceAll(/[*/]/g, '')} */`,
    (value) => `-- ${value.replaceAll('\n', '')}\n`,
  ];
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.constantFrom(...forms)), { maxLength: 4 }),
      (values) => {
        const written = values.map(([value, form]) => form(`kept out ${value} kept out`)).join(', ');
        const text = withoutValues(`SELECT ${written} FROM here WHERE a = $1`);
        expect(text).not.toContain('kept');
        expect(text).toMatch(/^SELECT .* FROM here WHERE a = \$1$/s);
      },
    ),
  );
});
