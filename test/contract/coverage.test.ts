import { expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { endpoints } from '@content-platform/contract';

test('every endpoint of the contract has tests in this folder', () => {
  const sources = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(`${import.meta.dirname}/${name}`, 'utf8'))
    .join('');
  const described = new Set(
    [...sources.matchAll(/describeEndpoint\(\s*(?:contract\.)?(\w+),/g)].map((match) => match[1]),
  );
  expect(endpoints.map(({ name }) => name).filter((name) => !described.has(name))).toEqual([]);
});
