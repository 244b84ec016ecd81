import { expect, test } from '@jest/globals';
import { parseCommand } from './commands.ts';

const nothing = { model: undefined, ids: [], title: undefined, via: 'http', traffic: undefined };

test.each([
  ['edit webform 12', { ...nothing, action: 'edit', model: 'webform', ids: [12] }],
  [
    'edit webform 12 --title T --via kafka',
    { ...nothing, action: 'edit', model: 'webform', ids: [12], title: 'T', via: 'kafka' },
  ],
  ['edit webform 3,1,3', { ...nothing, action: 'edit', model: 'webform', ids: [3, 1] }],
  ['cleared webform 12', { ...nothing, action: 'cleared', model: 'webform', ids: [12] }],
  ['create pathway', { ...nothing, action: 'create', model: 'pathway' }],
  ['delete condition 3', { ...nothing, action: 'delete', model: 'condition', ids: [3] }],
  ['edit --rate 5 --seconds 2', { ...nothing, action: 'edit', traffic: { rate: 5, seconds: 2 } }],
])('%s', (line, command) => {
  expect(parseCommand(line.split(' '))).toEqual(command);
});

test.each([
  ['', /must be edit, create, delete or cleared\./],
  ['drop webform 1', /The command must be .+, not drop\./],
  ['edit page 1', /no model page/],
  ['edit webform', /edit needs a model and an id/],
  ['edit webform 0', /The id is 0/],
  ['edit webform 9007199254740992', /The id is 9007199254740992: a whole number from 1 to 9007199254740991/],
  ['edit webform 1.5', /The id is 1.5/],
  ['edit webform 1,', /The id is :/],
  [`edit webform ${Array.from({ length: 1_001 }, (_, id) => id + 1).join()}`, /1001 ids: at most 1000/],
  ['delete webform 1,2', /Only edit takes several ids/],
  ['edit webform 1,2 --rate 5 --seconds 1', /Only edit takes several ids, without --rate/],
  ['cleared webform', /cleared needs a model and an id/],
  ['edit webform 1 2', /Too many arguments: 2/],
  ['edit webform 1 --via post', /--via must be http, kafka or sql, not post\./],
  ['edit webform 1 --rate 5', /go together/],
  ['delete webform 1 --rate 5 --seconds 1', /--rate is for edit/],
  ['edit webform 1 --tilte T', /--tilte/],
])('refuses %s', (line, message) => {
  expect(() => parseCommand(line.split(' ').filter(Boolean))).toThrow(message);
});
