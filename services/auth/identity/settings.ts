import { z } from 'zod';
import { endpoints } from '@content-platform/contract';
import { areAllSet, ConfigError, flag, list } from '@content-platform/chassis';

const nameAllowed = 'a name of a-z, 0-9 and - that begins with a letter and with which no other path begins';

function isName(name: string): boolean {
  return (
    /^[a-z][a-z0-9-]{0,31}$/.test(name) && !endpoints.some(({ path }) => path.startsWith(`/api/${name}/`))
  );
}

/** Returns whether a URL is on this machine, where http is safe. */
export function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(url).hostname);
}

/** Accepts https, or http on loopback, without parts that prevent a comparison as text. */
function isPlain(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, search, hash, username, password } = new URL(value);
  const safe = protocol === 'https:' || (protocol === 'http:' && isLoopback(value));
  return safe && !search && !hash && !username && !password;
}

/** A URL of a page or service outside of the platform. `allowed` describes it. */
export const plainUrl = (allowed: string) => z.string(allowed).refine(isPlain, allowed);

/** The settings of the identity provider. The first three are required to enable it. */
export const identityConfig = {
  IDENTITY_ISSUER: plainUrl('an https URL (http on loopback) without query')
    .optional()
    .describe(
      'Issuer URL of the OpenID Connect provider, https; unset: login at an identity provider is off',
    ),
  IDENTITY_CLIENT_ID: z.string().min(1).optional().describe('OIDC client ID; required with IDENTITY_ISSUER'),
  IDENTITY_CLIENT_SECRET: z
    .string()
    .min(1)
    .optional()
    .describe('OIDC client secret; required with IDENTITY_ISSUER'),
  IDENTITY_NAME: z
    .string(nameAllowed)
    .refine(isName, nameAllowed)
    .default('identity')
    .describe('Name of the identity provider in the paths `/api/<name>/…`: a to z, 0 to 9 and -'),
  IDENTITY_RETURN_TO: list(plainUrl('https URLs (http on loopback) without query, separated by commas'))
    .default([])
    .describe(
      'URLs to which a login may send the browser back, https, separated by commas; clients send one of them exactly as written here',
    ),
  IDENTITY_LINK_BY_EMAIL: flag().describe(
    'Whether a verified email of the provider logs in the existing user with that email: `true` or `false`',
  ),
  IDENTITY_ALLOW_UNVERIFIED: flag().describe(
    'Whether a login with an email that the provider has not verified creates a user: `true` or `false`',
  ),
  IDENTITY_SUBORGS_CLAIM: z
    .string()
    .min(1)
    .default('suborgs')
    .describe('Claim of the ID token that lists the parts of the organisation that a user may choose'),
};

export interface ProviderSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
}

export type IdentitySettings = ReturnType<typeof identitySettings>;

/** Checks that browsers can store the login's cookie: it requires https, except on this machine. */
function checkPublicUrl(publicUrl: string): void {
  if (new URL(publicUrl).protocol === 'https:' || isLoopback(publicUrl)) return;
  throw new ConfigError(
    `PUBLIC_URL must be an https URL (http on loopback) where people log in at an identity provider, not ${JSON.stringify(publicUrl)}`,
  );
}

const needed = ['IDENTITY_ISSUER', 'IDENTITY_CLIENT_ID', 'IDENTITY_CLIENT_SECRET'] as const;

/** Throws ConfigError if the provider is only partly configured, or PUBLIC_URL is unsafe for logins. */
export function identitySettings(
  config: z.output<z.ZodObject<typeof identityConfig>> & { PUBLIC_URL: string },
) {
  let provider: ProviderSettings | undefined;
  if (areAllSet(config, needed)) {
    checkPublicUrl(config.PUBLIC_URL);
    const { IDENTITY_ISSUER: issuer, IDENTITY_CLIENT_ID: clientId } = config;
    provider = { issuer, clientId, clientSecret: config.IDENTITY_CLIENT_SECRET };
  }
  return {
    name: config.IDENTITY_NAME,
    /** undefined: logins at a provider are disabled */
    provider,
    returnTo: config.IDENTITY_RETURN_TO,
    linkByEmail: config.IDENTITY_LINK_BY_EMAIL,
    allowUnverified: config.IDENTITY_ALLOW_UNVERIFIED,
    suborgsClaim: config.IDENTITY_SUBORGS_CLAIM,
  };
}
