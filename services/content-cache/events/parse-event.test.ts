import { expect, test } from '@jest/globals';
import { parseEvent } from './parse-event.ts';

const parse = (value: string | Buffer | null) =>
  parseEvent(typeof value === 'string' ? Buffer.from(value) : value);

const webform = (id: number) => ({ model: 'webform', id });

test.each([
  ['a record', '{"model":"webform","id":12}', webform(12)],
  ['the highest id', '{"model":"condition","id":9007199254740991}', { model: 'condition', id: 2 ** 53 - 1 }],
  ['a pattern', '{"pattern":"pathway:*"}', { model: 'pathway', id: null }],
  [
    'a pattern beside nulls',
    '{"model":null,"id":null,"pattern":"webform:*"}',
    { model: 'webform', id: null },
  ],
  ['unknown fields', '{"model":"webform","id":1,"tenant":7,"__proto__":{"id":2}}', webform(1)],
  ['a byte order mark and spaces', '\uFEFF {"model":"webform","id":1} \n', webform(1)],
  ['a malformed time', '{"model":"webform","id":1,"occurred_at":"today"}', webform(1)],
  ['a malformed change', '{"model":"webform","id":1,"change":"restored"}', webform(1)],
  ['a malformed event ID', '{"model":"webform","id":1,"event_id":55}', webform(1)],
])('accepts %s', (_, value, target) => {
  expect(parse(value)).toEqual({ target, occurredAt: undefined });
});

test('accepts an event from the future, with its time', () => {
  const inTwoYears = new Date(Date.now() + 2 * 365 * 86_400_000).toISOString();
  const event = parse(JSON.stringify({ model: 'webform', id: 1, occurred_at: inTwoYears }));
  expect(event).toEqual({ target: webform(1), occurredAt: Date.parse(inTwoYears) });
});

test.each([
  ['null', null, 'empty', null],
  ['no bytes', '', 'empty', null],
  ['not JSON', 'webform:12', 'not_json', null],
  ['a zero byte', '\0', 'not_json', null],
  ['0xFF', Buffer.from([0xff]), 'not_json', null],
  ['0xFF in a string', Buffer.from('{"model":"webform\xff","id":1}', 'latin1'), 'not_json', null],
  ['deep nesting', '['.repeat(16_000), 'not_json', null],
  ['1 MB', 'x'.repeat(1_000_000), 'too_large', null],
  ['1 MB of nesting', '['.repeat(1_000_000), 'too_large', null],
  ['a list', '[{"model":"webform","id":1}]', 'invalid_event', null],
  ['the JSON null', 'null', 'invalid_event', null],
  ['an empty object', '{}', 'invalid_event', null],
  ['an unknown model', '{"model":"letter","id":1}', 'unknown_model', null],
  ['a model of another case', '{"model":"Webform","id":1}', 'unknown_model', null],
  ["an unknown model's pattern", '{"pattern":"letter:*"}', 'unknown_model', null],
  ['the pattern of everything', '{"pattern":"*"}', 'invalid_event', null],
  ['a pattern within a model', '{"pattern":"webform:1*"}', 'invalid_event', null],
  ['the id as a string', '{"model":"webform","id":"12"}', 'invalid_event', 'webform'],
  ['id 0', '{"model":"webform","id":0}', 'invalid_event', 'webform'],
  ['id 1.5', '{"model":"webform","id":1.5}', 'invalid_event', 'webform'],
  ['id 2^53', '{"model":"webform","id":9007199254740992}', 'invalid_event', 'webform'],
  ['no id', '{"model":"webform"}', 'invalid_event', 'webform'],
  ['a model that is no string', '{"model":12,"id":1}', 'invalid_event', null],
])('turns %s into a failed job', (_, value, name, model) => {
  expect(parse(value)).toEqual({ class: name, model, error: expect.any(String) });
});

test('the error names the field and the expected type', () => {
  const { error } = parse('{"model":"webform","id":"12"}') as { error: string };
  expect(error).toMatch(/^id: .*number/);
});
