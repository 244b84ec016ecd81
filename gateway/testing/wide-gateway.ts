// For benches: runs a gateway with EXTRA endpoints in addition to the contract, in front of UPSTREAM, as a process. Prints
// its URL and a valid token.
import { createLogger } from '@content-platform/chassis';
import { endpoints, readContent } from '@content-platform/contract';
import { startGateway } from './gateway.ts';
import { mint } from './tokens.ts';

/** They look like the requested path, and precede it if paths are compared in sequence. */
const more = Array.from({ length: Number(process.env['EXTRA']) }, (_, index) => ({
  ...readContent,
  name: `more${index}`,
  path: `/api/a-${index}/:model/:id` as const,
}));
const { origin } = await startGateway({
  endpoints: [...endpoints, ...more],
  services: { 'content-cache': process.env['UPSTREAM']! },
  logger: createLogger('gateway', 'info', { write: () => undefined }),
});
// Verifiers limit a token's lifetime, which counts from iat.
const exp = Math.floor(Date.now() / 1_000) + 6 * 3_600;
process.send!({ origin, token: mint({ iat: exp - 900, exp }) });
process.once('disconnect', () => process.exit());
