import * as contract from '@content-platform/contract';
import {
  createService,
  createTokenVerifier,
  handle,
  type Database,
  type Logger,
  type Metrics,
} from '@content-platform/chassis';
import { createAccessTokens } from './access-tokens.ts';
import { createClientStore } from './client-store.ts';
import { jwks } from './endpoints/jwks.ts';
import { login } from './endpoints/login.ts';
import { me } from './endpoints/me.ts';
import { token } from './endpoints/token.ts';
import { createLogins } from './metrics.ts';
import { createPasswords } from './passwords.ts';
import type { SigningKeys } from './signing-keys.ts';
import { createUserStore } from './user-store.ts';

export interface AuthDeps {
  /** PUBLIC_URL: the tokens' issuer. */
  issuer: string;
  database: Database;
  keys: SigningKeys;
  logger: Logger;
  metrics: Metrics;
}

export function createAuth({ issuer, database, keys, logger, metrics }: AuthDeps) {
  const users = createUserStore(database.query);
  const clients = createClientStore(database.query);
  const passwords = createPasswords();
  const tokens = createAccessTokens(issuer, keys);
  const logins = createLogins(metrics);
  const verifier = createTokenVerifier(issuer, keys);
  return createService({ name: 'auth', logger, metrics, tokens: verifier }, [
    handle(contract.login, login({ users, passwords, tokens, logins, logger })),
    handle(contract.token, token({ clients, passwords, tokens, logger })),
    handle(contract.me, me({ users })),
    handle(contract.jwks, jwks({ keys })),
  ]);
}
