import { expect, test } from '@jest/globals';
import { commonConfig, readConfig } from '@content-platform/chassis';
import { identityConfig, identitySettings } from './settings.ts';

const three = {
  IDENTITY_ISSUER: 'https://id.example.com/realm',
  IDENTITY_CLIENT_ID: 'platform',
  IDENTITY_CLIENT_SECRET: 'a secret',
};
const shape = { ...commonConfig(8081), ...identityConfig };
const read = (env: Record<string, string>) => identitySettings(readConfig(shape, env));

test('is off without the three required settings, and on with them', () => {
  expect(read({ IDENTITY_ISSUER: '' })).toEqual({
    name: 'identity',
    provider: undefined,
    returnTo: [],
    linkByEmail: false,
    allowUnverified: false,
    suborgsClaim: 'suborgs',
  });
  const more = {
    IDENTITY_NAME: 'company-login',
    IDENTITY_RETURN_TO: 'https://a.example/in, http://127.0.0.1:3000/in',
    IDENTITY_LINK_BY_EMAIL: 'true',
    IDENTITY_SUBORGS_CLAIM: 'units',
  };
  expect(read({ ...three, ...more })).toEqual({
    name: 'company-login',
    provider: { issuer: three.IDENTITY_ISSUER, clientId: 'platform', clientSecret: 'a secret' },
    returnTo: ['https://a.example/in', 'http://127.0.0.1:3000/in'],
    linkByEmail: true,
    allowUnverified: false,
    suborgsClaim: 'units',
  });
});

test.each([
  [['IDENTITY_ISSUER'], 'IDENTITY_CLIENT_ID and IDENTITY_CLIENT_SECRET are not set'],
  [['IDENTITY_ISSUER', 'IDENTITY_CLIENT_ID'], 'IDENTITY_CLIENT_SECRET is not set'],
  [['IDENTITY_ISSUER', 'IDENTITY_CLIENT_SECRET'], 'IDENTITY_CLIENT_ID is not set'],
  [['IDENTITY_CLIENT_ID', 'IDENTITY_CLIENT_SECRET'], 'IDENTITY_ISSUER is not set'],
] as const)('refuses %p alone: %s', (names, message) => {
  const env = Object.fromEntries(names.map((name) => [name, three[name]]));
  const rest = '; set all of IDENTITY_ISSUER, IDENTITY_CLIENT_ID, IDENTITY_CLIENT_SECRET or none';
  expect(() => read(env)).toThrow(message + rest);
});

test.each([
  ['IDENTITY_ISSUER', 'http://id.example.com'],
  ['IDENTITY_ISSUER', 'id.example.com'],
  ['IDENTITY_ISSUER', 'https://id.example.com/?realm=1'],
  ['IDENTITY_NAME', 'Identity'],
  ['IDENTITY_NAME', 'a/b'],
  ['IDENTITY_NAME', 'admin'],
  ['IDENTITY_NAME', 'docs'],
  ['IDENTITY_NAME', 'x'.repeat(33)],
  ['IDENTITY_RETURN_TO', 'http://app.example.com/in'],
  ['IDENTITY_RETURN_TO', 'https://app.example.com/in,javascript:alert(1)'],
  ['IDENTITY_RETURN_TO', 'https://app.example.com/in?a=1'],
  ['IDENTITY_RETURN_TO', 'https://app.example.com/in#a'],
  ['IDENTITY_RETURN_TO', 'https://app.example.com@evil.example/in'],
  ['IDENTITY_LINK_BY_EMAIL', 'yes'],
])('refuses %s=%s', (name, value) => {
  expect(() => read({ ...three, [name]: value })).toThrow(new RegExp(`^${name} must be `));
});

const unsafe = 'http://platform.example.com';

test.each(['https://platform.example.com', 'http://127.0.0.1:8080', 'http://localhost', 'http://[::1]:8080'])(
  'accepts PUBLIC_URL %s',
  (PUBLIC_URL) => {
    expect(read({ ...three, PUBLIC_URL }).provider).toBeDefined();
  },
);

test('refuses a PUBLIC_URL with http outside of this machine only if the provider is configured', () => {
  expect(() => read({ ...three, PUBLIC_URL: unsafe })).toThrow(
    `PUBLIC_URL must be an https URL (http on loopback) where people log in at an identity provider, not "${unsafe}"`,
  );
  expect(read({ PUBLIC_URL: unsafe }).provider).toBeUndefined();
});
