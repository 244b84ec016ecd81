import {
  allowInsecureRequests,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretPost,
  type Configuration,
  discovery,
  enableNonRepudiationChecks,
} from 'openid-client';
import { IdentityFailure } from './failure.ts';
import { isLoopback, type ProviderSettings } from './settings.ts';

/** In seconds. A callback makes at most four requests to the provider, within the 15 s of the gateway. */
const timeoutSeconds = 3;
/** Time between discoveries, and after a failed one, in ms. */
const refreshMs = 3_600_000;
const pauseMs = 2_000;

/** Uses Basic, which every server with client secrets supports (RFC 6749 §2.3.1), unless the metadata excludes it. */
function authenticate(secret: string): ClientAuth {
  const post = ClientSecretPost(secret);
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    if (!methods.includes('client_secret_basic')) return post(server, client, body, headers);
    // The library would also encode `-._~`, which GitLab and Authentik do not decode.
    const pair = `${encodeURIComponent(client.client_id)}:${encodeURIComponent(secret)}`;
    headers.set('Authorization', `Basic ${btoa(pair)}`);
  };
}

async function discover({ issuer, clientId, clientSecret }: ProviderSettings): Promise<Configuration> {
  const configuration = await discovery(new URL(issuer), clientId, undefined, authenticate(clientSecret), {
    timeout: timeoutSeconds,
    // Without this check TLS would replace the signature check of the ID token (OpenID Connect Core §3.1.3.7 (6)).
    execute: [enableNonRepudiationChecks, ...(isLoopback(issuer) ? [allowInsecureRequests] : [])],
  });
  const { token_endpoint, jwks_uri } = configuration.serverMetadata();
  if (!token_endpoint || !jwks_uri) throw new Error('the metadata lacks token_endpoint or jwks_uri');
  // Throws if the endpoint is missing or is plain http.
  buildAuthorizationUrl(configuration, {});
  return configuration;
}

/** Discovers the provider when it is first needed, and uses the last metadata while the provider is unavailable. */
export function createProvider(settings: ProviderSettings | undefined) {
  let found: Configuration | undefined;
  let failure: IdentityFailure | undefined;
  let nextDiscoveryAt = -Infinity;
  let discovering: Promise<void> | undefined;

  async function find(): Promise<void> {
    try {
      if (!settings) throw new Error('none is configured');
      found = await discover(settings);
      nextDiscoveryAt = performance.now() + refreshMs;
    } catch (error) {
      failure = new IdentityFailure('identity_unavailable', error);
      nextDiscoveryAt = performance.now() + pauseMs;
    } finally {
      discovering = undefined;
    }
  }

  return {
    /** Rejects with IdentityFailure `identity_unavailable`. */
    async configuration(): Promise<Configuration> {
      if (performance.now() >= nextDiscoveryAt) await (discovering ??= find());
      if (found) return found;
      throw failure!;
    },
  };
}
