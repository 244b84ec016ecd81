import { lookup } from 'node:dns/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** A family of metrics as prom-client tells it in JSON. `metricName` is that of a part: a bucket, a sum, a count. */
export interface Family {
  name: string;
  values: { labels: Readonly<Record<string, string | number>>; value: number; metricName?: string }[];
}

/** A process that does not answer within this is down. */
const withinMs = 2_000;
/** Ten times what a process with all its series tells. */
const maxBytes = 10_000_000;

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

/** The body as text. Throws when it is longer than anything of ours. */
async function bodyOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const isSeries = (one: Partial<Family['values'][number]> | null) =>
  // JSON has no NaN, which a gauge is before it was ever measured: null counts as 0.
  (typeof one?.value === 'number' || one?.value === null) &&
  typeof (one.labels ?? undefined) === 'object' &&
  typeof (one.metricName ?? '') === 'string';
const isFamily = (one: Partial<Family> | null) =>
  typeof one?.name === 'string' && Array.isArray(one.values) && one.values.every(isSeries);

/** Every process of ours tells when it began. */
function tellsItsStart(scrape: Map<string, Family['values']>): boolean {
  const started = scrape.get('process_start_time_seconds')?.[0]?.value ?? NaN;
  return !Number.isNaN(new Date(started * 1_000).getTime());
}

/** What a process measures, by the family's name; undefined when it does not answer as one of ours does. */
export async function scrape(address: string): Promise<Map<string, Family['values']> | undefined> {
  try {
    const response = await fetch(`${address}/metrics`, {
      headers: { Accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(withinMs),
    });
    const families = JSON.parse(await bodyOf(response)) as Family[];
    // What is not of this form would stop the look at all others, too.
    if (!families.every(isFamily)) return undefined;
    const scrape = new Map(families.map(({ name, values }) => [name, values]));
    return tellsItsStart(scrape) ? scrape : undefined;
  } catch {
    return undefined;
  }
}

export type Scrape = NonNullable<Awaited<ReturnType<typeof scrape>>>;
