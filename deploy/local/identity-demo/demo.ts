import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ROOT } from '../config.ts';
import { checkReady, HOST, isFree } from '../ports.ts';
import { Problem } from '../problem.ts';
import type { ProcessSpec } from '../supervised.ts';

/** Client registration of the platform at the demo identity provider. */
export const PLATFORM_CLIENT = { id: 'content-platform', secret: 'demo-identity-secret' };

/** Offset from the gateway's port to the port of the demo identity provider. */
const portOffset = 9;

/** Returns the issuer URL, and the URL at which a demo login ends instead of in an app. */
function addressesOf(gatewayPort: number): { issuer: string; returnTo: string } {
  const issuer = `http://${HOST}:${gatewayPort + portOffset}`;
  return { issuer, returnTo: `${issuer}/return` };
}

/** Returns the demo identity provider as a process of the stack. @throws Problem if its port is in use */
export async function prepareIdentityDemo(gatewayPort: number) {
  const { issuer, returnTo } = addressesOf(gatewayPort);
  const port = gatewayPort + portOffset;
  if (!(await isFree(port)))
    throw new Problem(
      `Port ${port} of the demo identity provider is taken: free it, or change GATEWAY_PORT.`,
    );
  const main = join(ROOT, 'deploy/local/identity-demo/main.ts');
  const spec: ProcessSpec = {
    name: 'identity-demo',
    command: process.execPath,
    args: [main, String(port), `http://${HOST}:${gatewayPort}/api/identity/login/callback`],
    cwd: ROOT,
    ready: () => checkReady(`${issuer}/.well-known/openid-configuration`),
    readyWithinMs: 60_000,
    stopSignal: 'SIGTERM',
  };
  /** Settings of the auth service for the demo identity provider. */
  const environment = {
    IDENTITY_ISSUER: issuer,
    IDENTITY_CLIENT_ID: PLATFORM_CLIENT.id,
    IDENTITY_CLIENT_SECRET: PLATFORM_CLIENT.secret,
    IDENTITY_NAME: 'identity',
    IDENTITY_RETURN_TO: returnTo,
    IDENTITY_LINK_BY_EMAIL: 'true',
    IDENTITY_SUBORGS_CLAIM: 'suborgs',
  };
  return { issuer, spec, environment };
}

/** Returns instructions for a demo login. The terminal takes the role of the app, which keeps the PKCE verifier secret. */
export function identityTour(gateway: string): string[] {
  const { returnTo } = addressesOf(Number(new URL(gateway).port));
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const query = new URLSearchParams({ return_to: returnTo, state: 'demo', code_challenge: challenge });
  const form = `-d grant_type=urn:content-platform:identity-code -d code_verifier=${verifier}`;
  return [
    'To log in at the identity provider, open this URL in a browser and choose a person:',
    '',
    `  ${gateway}/api/identity/login?${query}`,
    '',
    'The last page shows a code. Within a minute, run this command with that code instead of CODE:',
    '',
    `  curl -s ${gateway}/api/token ${form} -d code=CODE`,
    '',
  ];
}
