import { HttpError, type Gate, type Logger } from '@content-platform/chassis';
import { createBrowserCookie } from './browser-cookie.ts';
import { createLogoutTokens } from './logout-token.ts';
import { createProvider } from './provider.ts';
import type { IdentitySettings } from './settings.ts';

/** Creates the dependencies of the identity endpoints. `publicUrl` is the URL at which browsers reach the platform. */
export function createIdentity(settings: IdentitySettings, publicUrl: string, logger: Logger) {
  const { name, provider, returnTo } = settings;
  const connection = createProvider(provider);
  if (provider && returnTo.length === 0) logger.warn('IDENTITY_RETURN_TO is empty: single sign-on fails');
  const gate: Gate = ({ identity }) => {
    if (identity !== name) throw new HttpError('not_found', 'There is no identity provider with this name.');
    if (provider) return;
    throw new HttpError('identity_login_disabled', 'Logging in at an identity provider is not configured.');
  };
  return {
    ...settings,
    provider: connection,
    checkLogoutToken: createLogoutTokens(connection, provider?.clientId),
    cookie: createBrowserCookie(publicUrl),
    redirectUri: `${publicUrl}/api/${name}/login/callback`,
    gate,
  };
}
