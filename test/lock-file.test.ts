import { expect, test } from '@jest/globals';
import { ROOT } from '../deploy/local/config.ts';
import { lockProblems, readPackages } from './lock-file.ts';

test('names what in the lock file differs from a package.json', () => {
  const [packages, manifests] = readPackages(ROOT);
  expect(lockProblems(packages, manifests)).toEqual([]);
  (manifests['gateway']!['dependencies'] as Record<string, string>)['express'] = '5.0.0';
  delete manifests['services/letters'];
  expect(lockProblems(packages, manifests)).toEqual([
    expect.stringMatching(/^gateway\/package\.json: dependencies\.express is 5\.0\.0, locked is \d/),
    'services/letters is in the lock file and is no workspace',
  ]);
});
