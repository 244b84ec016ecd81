import { expect, test } from '@jest/globals';
import { scopes, type Role } from '@content-platform/contract';
import { scopesOf } from './access-tokens.ts';

test.each<[Role[], readonly string[]]>([
  [['user'], []],
  [['sre'], ['jobs:manage', 'pulse:view']],
  [['admin'], scopes],
  [
    ['user', 'sre'],
    ['jobs:manage', 'pulse:view'],
  ],
  [['admin', 'sre'], scopes],
])('the roles %j give the scopes %j', (roles, expected) => {
  expect(scopesOf(roles)).toEqual(expected);
});
