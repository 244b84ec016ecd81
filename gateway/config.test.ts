import { expect, test } from '@jest/globals';
import { readConfig } from '@content-platform/chassis';
import { gatewayConfig } from './config.ts';

const read = (env: Record<string, string>) => readConfig(gatewayConfig, env);

test('has a default for every setting', () => {
  expect(read({})).toMatchObject({
    PORT: 8080,
    AUTH_URL: 'http://127.0.0.1:8081',
    AUTH_INTERNAL_URL: 'http://127.0.0.1:9081',
    CONTENT_CACHE_URL: 'http://127.0.0.1:8082',
    CORS_ORIGINS: [],
    TRUSTED_PROXIES: [],
    RATE_LIMIT_SCALE: 1,
    HSTS_INCLUDE_SUBDOMAINS: false,
  });
});

test('parses lists and numbers', () => {
  const env = {
    CORS_ORIGINS: 'https://a.example, http://localhost:3000,capacitor://localhost',
    TRUSTED_PROXIES: '10.0.0.0/8,fd00::/8',
    RATE_LIMIT_SCALE: '0.5',
    HSTS_INCLUDE_SUBDOMAINS: 'true',
  };
  expect(read(env)).toMatchObject({
    CORS_ORIGINS: ['https://a.example', 'http://localhost:3000', 'capacitor://localhost'],
    TRUSTED_PROXIES: ['10.0.0.0/8', 'fd00::/8'],
    RATE_LIMIT_SCALE: 0.5,
    HSTS_INCLUDE_SUBDOMAINS: true,
  });
  expect(read({ RATE_LIMIT_SCALE: '0' }).RATE_LIMIT_SCALE).toBe(0);
});

test.each([
  ['LETTERS_URL', 'https://letters.example'],
  ['LETTERS_URL', 'http://letters.example:64536'],
  ['LETTERS_URL', 'http:'],
  ['AUTH_URL', 'https://auth.example'],
  ['CORS_ORIGINS', '*'],
  ['CORS_ORIGINS', 'https://a.example/'],
  ['CORS_ORIGINS', 'https://a.example/path'],
  ['CORS_ORIGINS', 'null'],
  ['TRUSTED_PROXIES', '10.0.0.1'],
  ['TRUSTED_PROXIES', '10.0.0.0/33'],
  ['RATE_LIMIT_SCALE', '-1'],
  ['HSTS_INCLUDE_SUBDOMAINS', 'yes'],
  ['RATE_LIMIT_SCALE', '1e9'],
  ['RATE_LIMIT_SCALE', 'off'],
])('refuses %s=%s with one line that names the setting', (name, value) => {
  expect(() => read({ [name]: value })).toThrow(new RegExp(`^${name} must be .+, not (?:"|what it is)`));
});
