import { startService } from '../../../test/support/programs.ts';

/** Starts the service of ./auth.ts in a process, with these settings, modules to preload and arguments. */
export async function startServiceProcess(
  env: NodeJS.ProcessEnv = {},
  { preloads = [], args = [] }: { preloads?: string[]; args?: string[] } = {},
) {
  const flags = preloads.map((file) => `--import=${new URL(`../${file}`, import.meta.url).href}`);
  const service = await startService('services/chassis/testing/auth.ts', { env, flags, args });
  const url = `${service.origin}/.well-known/jwks.json`;
  return {
    ...service,
    ask: async (headers: Record<string, string> = {}) => (await fetch(url, { headers })).status,
  };
}
