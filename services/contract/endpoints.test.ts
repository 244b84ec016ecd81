import { describe, expect, test } from '@jest/globals';
import { scopes, type Endpoint } from './endpoint.ts';
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

describe.each(endpoints.map((endpoint) => [endpoint.name, endpoint] as const))(
  '%s',
  (_, endpoint: Endpoint) => {
    test('its path is plain, and its parameters are those of its schema', () => {
      expect(endpoint.path).toMatch(/^(\/(\.?[a-z][a-zA-Z-]*(\.json)?|:[a-z]+))+$/);
      const names = [...endpoint.path.matchAll(/:(\w+)/g)].map((match) => match[1]);
      expect(Object.keys(endpoint.params?.shape ?? {})).toEqual(names);
    });

    test('a body comes with a method that may have one, and has a limit', () => {
      if (!endpoint.body) return;
      expect(endpoint.method).not.toBe('GET');
      expect(endpoint.body.maxBytes).toBeGreaterThan(0);
    });

    test('it has a limit, a summary and an access that exists', () => {
      expect(endpoint.rateLimit.requests).toBeGreaterThan(0);
      expect(endpoint.rateLimit.seconds).toBeGreaterThan(0);
      expect(endpoint.summary).toMatch(/^[A-Z].*\.$/);
      expect(['public', 'token', 'user', ...scopes]).toContain(endpoint.access);
    });

    test('its errors follow from what it is', () => {
      const codes = errorsOf(endpoint);
      unique([...codes]);
      expect(codes).toContain('rate_limited');
      const checked = endpoint.access !== 'public' || codes.includes('token_required');
      expect(codes.includes('invalid_token')).toBe(checked);
      // Where the gateway lets everybody through, only a service that takes cookies for tokens asks for one.
      if (endpoint.access === 'public' && checked) expect(endpoint.cookies).toBe(true);
      expect(codes.includes('unsupported_media_type')).toBe(endpoint.body !== undefined);
      expect(codes.includes('payload_too_large')).toBe(endpoint.body !== undefined);
      expect(codes.includes('gateway_timeout')).toBe(endpoint.service !== 'gateway');
    });
  },
);
