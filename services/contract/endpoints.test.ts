import { expect, test } from '@jest/globals';
import { scopes } from './endpoint.ts';
import { endpoints, errorsOf } from './endpoints.ts';
import { errors } from './errors.ts';

const unique = (values: string[]) =>
  expect(values.filter((value, at) => values.indexOf(value) !== at)).toEqual([]);

test('names are unique, and so are methods at a path', () => {
  unique(endpoints.map(({ name }) => name));
  // Parameters by another name are the same path.
  unique(endpoints.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`));
});

test('paths that differ in names of parameters alone would be one path with two templates', () => {
  const templates = [...new Set(endpoints.map(({ path }) => path))];
  unique(templates.map((path) => path.replace(/:\w+/g, ':')));
});

test('every error has a 4xx or 5xx and says what it means', () => {
  for (const { status, summary } of Object.values(errors)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(summary).toMatch(/^[A-Z].*\.$/);
  }
});

test.each(endpoints)('the description of $name is complete and agrees with itself', (endpoint) => {
  const { method, path, params, body, access, rateLimit, cookies, summary } = endpoint;
  expect(path).toMatch(/^(\/(\.?[a-z][a-zA-Z-]*(\.json)?|:[a-z]+))+$/);
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1]);
  expect(Object.keys(params?.shape ?? {})).toEqual(names);
  expect(summary).toMatch(/^[A-Z].*\.$/);
  expect(['public', 'token', 'user', ...scopes]).toContain(access);
  for (const limit of [rateLimit.requests, rateLimit.seconds, body?.maxBytes ?? 1])
    expect(limit).toBeGreaterThan(0);
  if (body) expect(method).not.toBe('GET');
  // Where the gateway lets everybody through, only a service that takes cookies for tokens asks for one.
  if (access === 'public' && errorsOf(endpoint).includes('invalid_token')) expect(cookies).toBe(true);
});
