import { expect, test } from '@jest/globals';
import { endpoints } from '@content-platform/contract';
import { createAllowlist } from './access.ts';

const allowlist = createAllowlist(endpoints);
const at = (path: string) => [...(allowlist(path) ?? [])].map(([method, { name }]) => `${method} ${name}`);

test.each([
  ['/api/me', ['DELETE deleteMe', 'GET me', 'HEAD me']],
  ['/api/content/webform/12', ['GET readContent', 'HEAD readContent']],
  ['/api/content/anything/else', ['GET readContent', 'HEAD readContent']],
  ['/api/admin/failed-jobs', ['DELETE deleteFailedJobs', 'GET listFailedJobs', 'HEAD listFailedJobs']],
  ['/api/admin/failed-jobs/5', ['DELETE deleteFailedJob', 'GET readFailedJob', 'HEAD readFailedJob']],
  ['/api/admin/failed-jobs/5/retry', ['POST retryFailedJob']],
  // A fixed path does not match a parameter, even for other methods.
  ['/api/admin/failed-jobs/retry', ['POST retryFailedJobs']],
  ['/api/admin/failed-jobs/classes', ['GET listFailedJobClasses', 'HEAD listFailedJobClasses']],
  // HEAD is not allowed, because GET changes state here.
  ['/api/identity/login', ['GET identityLogin']],
  ['/api/identity/login/callback', ['GET identityCallback']],
])('finds %s', (path, expected) => {
  expect(at(path)).toEqual(expected);
});

test.each(
  `/ /api /api/ /api/me/ /API/me /api/Me /api/me2 /api/m /api/%6De /api/me;x=1 /api/content
   /api/content/webform/ /api/content//12 /api/content/webform/12/ /api/content/webform/12/full
   /api/content/:model/:id/x /api/updateletter /metrics /health/ready constructor /__proto__
   /api/admin/failed-jobs/5/Retry`.split(/\s+/),
)('does not find %s', (path) => {
  expect(at(path)).toEqual([]);
});

test('prefers fixed segments to parameters, also further right', () => {
  const base = { ...endpoints[0]!, method: 'GET' as const };
  const made = createAllowlist([
    { ...base, name: 'any', path: '/a/:x/:y' },
    { ...base, name: 'right', path: '/a/:x/fixed' },
    { ...base, name: 'left', path: '/a/fixed/:y' },
  ]);
  const name = (path: string) => made(path)?.get('GET')?.name;
  expect([name('/a/1/2'), name('/a/1/fixed'), name('/a/fixed/2'), name('/a/fixed/fixed')]).toEqual([
    'any',
    'right',
    'left',
    'left',
  ]);
});
