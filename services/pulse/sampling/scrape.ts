import { lookup } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** A family of metrics as prom-client tells it in JSON. `metricName` is that of a part: a bucket, a sum, a count. */
export interface Family {
  name: string;
  values: { labels: Readonly<Record<string, string | number>>; value: number; metricName?: string }[];
}

/** A process that does not answer within this is down. */
const withinMs = 2_000;

/**
 * The addresses of the processes behind an internal address: its host may be a name with one address for each replica.
 * A process that has an address of either family is asked by IPv4. Without an answer: the address as it is.
 */
export async function processesAt(base: string): Promise<string[]> {
  const url = new URL(base);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found = await Promise.race([
    lookup(host, { all: true }).catch(() => []),
    sleep(withinMs, [], { ref: false }),
  ]);
  const four = found.filter(({ family }) => family === 4);
  const addresses = (four.length > 0 ? four : found).map(({ address, family }) => {
    url.hostname = family === 6 ? `[${address}]` : address;
    return url.origin;
  });
  return addresses.length > 0 ? addresses : [url.origin];
}

/** What a process measures, by the family's name; undefined when it does not answer as one of ours does. */
export async function scrape(address: string): Promise<Map<string, Family['values']> | undefined> {
  try {
    const response = await fetch(`${address}/metrics`, {
      headers: { Accept: 'application/json' },
      signal: AbortSignal.timeout(withinMs),
    });
    const families = (await response.json()) as Family[];
    return new Map(families.map(({ name, values }) => [name, values]));
  } catch {
    return undefined;
  }
}

export type Scrape = NonNullable<Awaited<ReturnType<typeof scrape>>>;
