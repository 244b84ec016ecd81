import { z } from 'zod';
import { endpoints } from '@content-platform/contract';
import { ConfigError, list } from '@content-platform/chassis';

const nameAllowed = 'a name of a-z, 0-9 and - that begins with a letter and with which no other path begins';

function isName(name: string): boolean {
  return (
    /^[a-z][a-z0-9-]{0,31}$/.test(name) && !endpoints.some(({ path }) => path.startsWith(`/api/${name}/`))
  );
}

/** Whether an address is on this machine, where http is safe. */
export function isLoopback(address: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(address).hostname);
}

/** https, or http on loopback; without what has no place in an address that is compared as a text. */
function isPlain(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, search, hash, username, password } = new URL(value);
  const safe = protocol === 'https:' || (protocol === 'http:' && isLoopback(value));
  return safe && !search && !hash && !username && !password;
}

const address = (allowed: string) => z.string(allowed).refine(isPlain, allowed);

/** What the service reads of the identity service. The first three switch it on. */
export const identityConfig = {
  IDENTITY_ISSUER: address('an https address (http on loopback) without query')
    .optional()
    .describe('OpenID Connect issuer of the identity service; without the three nobody logs in there'),
  IDENTITY_CLIENT_ID: z.string().min(1).optional().describe('Who the platform is at the identity service'),
  IDENTITY_CLIENT_SECRET: z.string().min(1).optional().describe('Its secret there'),
  IDENTITY_NAME: z
    .string(nameAllowed)
    .refine(isName, nameAllowed)
    .default('identity')
    .describe('Name of the identity service in the paths `/api/identity/…`'),
  IDENTITY_RETURN_TO: list(address('https addresses (http on loopback) without query, separated by commas'))
    .default([])
    .describe('Where a login may send the browser in the end; clients give one of them, letter by letter'),
  IDENTITY_LINK_BY_EMAIL: z
    .enum(['true', 'false'], 'true or false')
    .default('false')
    .describe('Whether a verified address there makes somebody the user who has it here'),
  IDENTITY_SUBORGS_CLAIM: z
    .string()
    .min(1)
    .default('suborgs')
    .describe('Claim that lists the parts of the organisation somebody may choose from'),
};

export interface ProviderSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
}

export type IdentitySettings = ReturnType<typeof identitySettings>;

/** A login is bound to the browser by a cookie that browsers take over https alone; on this machine by another one. */
function checkPublicUrl(publicUrl: string): void {
  if (new URL(publicUrl).protocol === 'https:' || isLoopback(publicUrl)) return;
  throw new ConfigError(
    `PUBLIC_URL must be an https address (http on loopback) where people log in at an identity service, not ${JSON.stringify(publicUrl)}`,
  );
}

const needed = ['IDENTITY_ISSUER', 'IDENTITY_CLIENT_ID', 'IDENTITY_CLIENT_SECRET'] as const;

/** Throws ConfigError when the identity service is configured in part, or PUBLIC_URL is not safe for logins there. */
export function identitySettings(
  config: z.output<z.ZodObject<typeof identityConfig>> & { PUBLIC_URL: string },
) {
  const [issuer, clientId, clientSecret] = needed.map((name) => config[name]);
  const provider: ProviderSettings | undefined =
    issuer && clientId && clientSecret ? { issuer, clientId, clientSecret } : undefined;
  const missing = needed.filter((name) => !config[name]);
  if (provider) checkPublicUrl(config.PUBLIC_URL);
  else if (missing.length < needed.length) {
    const verb = missing.length === 1 ? 'is' : 'are';
    throw new ConfigError(
      `${missing.join(' and ')} ${verb} not set; set all of ${needed.join(', ')} or none`,
    );
  }
  return {
    name: config.IDENTITY_NAME,
    /** undefined: switched off */
    provider,
    returnTo: config.IDENTITY_RETURN_TO,
    linkByEmail: config.IDENTITY_LINK_BY_EMAIL === 'true',
    suborgsClaim: config.IDENTITY_SUBORGS_CLAIM,
  };
}
