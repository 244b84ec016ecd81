import type { z } from 'zod';
import type { commonConfig, tokenConfig } from './config.ts';
import { remoteKeys } from './keys.ts';
import { remoteRevocations, watchRevocations } from './revocations.ts';
import type { Process } from './run.ts';
import { createTokenVerifier, type TokenVerifier } from './tokens.ts';

type Config = z.output<z.ZodObject<ReturnType<typeof commonConfig> & typeof tokenConfig>>;

/** Checks tokens with what the auth service publishes: its keys, and what was revoked. Ends with the process. */
export function tokensFromAuth({ config, logger, metrics, onStop }: Process<Config>): TokenVerifier {
  const keys = remoteKeys(`${config.AUTH_URL}/.well-known/jwks.json`, logger);
  const revocations = watchRevocations(remoteRevocations(config.AUTH_INTERNAL_URL), logger, metrics);
  onStop(() => revocations.close());
  return createTokenVerifier(config.PUBLIC_URL, keys, revocations);
}
