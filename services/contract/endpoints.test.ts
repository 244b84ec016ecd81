import { expect, test } from '@jest/globals';
import { scopes } from './endpoint.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors } from './errors.ts';

const unique = (values: string[]) =>
  expect(values.filter((value, at) => values.indexOf(value) !== at)).toEqual([]);

test('endpoint names are unique, and so is each method of a path', () => {
  unique(endpoints.map(({ name }) => name));
  // Paths that differ only in parameter names are the same path.
  unique(endpoints.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`));
});

test('no two path templates differ only in parameter names', () => {
  unique([...new Set(endpoints.map(({ path }) => path))].map((path) => path.replace(/:\w+/g, ':')));
});

test('every error has a 4xx or 5xx status and a description', () => {
  for (const { status, summary } of Object.values(errors)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(summary).toMatch(/^[A-Z].*\.$/);
  }
});

test.each(endpoints)('the definition of $name is complete and consistent', (endpoint) => {
  const { method, path, params, body, access, rateLimit, cookies, summary } = endpoint;
  expect(path).toMatch(/^(\/(\.?[a-z][a-zA-Z-]*(\.json)?|:[a-z_]+))+$/);
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1]);
  expect(Object.keys(params?.shape ?? {})).toEqual(names);
  expect(summary).toMatch(/^[A-Z].*\.$/);
  expect(summary.split(' ').length).toBeLessThanOrEqual(8);
  for (const one of [access].flat()) expect(['public', 'reader', 'user', ...scopes]).toContain(one);
  for (const limit of [rateLimit.requests, rateLimit.seconds, body?.maxBytes ?? 1])
    expect(limit).toBeGreaterThan(0);
  if (body) expect(method).not.toBe('GET');
  // For public endpoints the gateway checks no token; only a service that accepts cookies as tokens can refuse one.
  if (access === 'public' && errorsOf(endpoint).includes('invalid_token'))
    expect([cookies, errorsOf(endpoint).includes('mfa_enrollment_required')]).toEqual([true, true]);
});
