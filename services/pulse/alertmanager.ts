/** Reads the kinds of receivers, for example `slack`, from Alertmanager. Throws if it does not respond within 2 s. */
export async function alertReceivers(url: string): Promise<string[]> {
  const response = await fetch(`${url}/api/v2/status`, { signal: AbortSignal.timeout(2_000) });
  const { config } = (await response.json()) as { config: { original: string } };
  const kinds = [...config.original.matchAll(/^\s+(?:- )?(\w+)_configs:/gm)].map(([, kind]) => kind!);
  return [...new Set(kinds)];
}
