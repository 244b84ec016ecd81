import { expect, test } from '@jest/globals';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints } from '@content-platform/contract';
import { ROOT } from '../../deploy/local/config.ts';

test('every endpoint of the contract is tested through the gateway', () => {
  const sources = globSync('{gateway,services/*}/*/*.contract.test.ts', { cwd: ROOT })
    .map((file) => readFileSync(join(ROOT, file), 'utf8'))
    .join('');
  const described = new Set(
    [...sources.matchAll(/describeEndpoint\(\s*(?:contract\.)?(\w+),/g)].map((match) => match[1]),
  );
  expect(endpoints.map(({ name }) => name).filter((name) => !described.has(name))).toEqual([]);
});
