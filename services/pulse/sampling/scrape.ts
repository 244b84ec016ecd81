import { lookup } from 'node:dns/promises';
import { withTimeout } from '@content-platform/chassis';

/** A metric in prom-client's JSON. `metricName`: the name of a part, such as a bucket, sum or count. */
export interface Family {
  name: string;
  values: { labels: Readonly<Record<string, string | number>>; value: number; metricName?: string }[];
}

/** A process that does not answer in this time is down. */
const timeoutMs = 2_000;
/** Ten times the metrics of a process with all its series. */
const maxBytes = 10_000_000;

/**
 * Returns the URLs of the processes behind an internal URL, whose host name may have an address for each replica. IPv4 is
 * preferred. If the name cannot be resolved, returns the URL itself.
 */
export async function processesAt(base: string): Promise<string[]> {
  const url = new URL(base);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const lookedUp = lookup(host, { all: true }).catch(() => []);
  const found = await withTimeout(lookedUp, timeoutMs, []);
  const four = found.filter(({ family }) => family === 4);
  const addresses = (four.length > 0 ? four : found).map(({ address, family }) => {
    url.hostname = family === 6 ? `[${address}]` : address;
    return url.origin;
  });
  return addresses.length > 0 ? addresses : [url.origin];
}

/** Reads the body as text. Throws if it is longer than `maxBytes`. */
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
  // JSON has null for NaN, the value of a gauge before its first measurement.
  (typeof one?.value === 'number' || one?.value === null) &&
  typeof (one.labels ?? undefined) === 'object' &&
  typeof (one.metricName ?? '') === 'string';
const isFamily = (one: Partial<Family> | null) =>
  typeof one?.name === 'string' && Array.isArray(one.values) && one.values.every(isSeries);

/** Whether the scrape is from a process of the platform, all of which report their start. */
function hasStartTime(scrape: Map<string, Family['values']>): boolean {
  const started = scrape.get('process_start_time_seconds')?.[0]?.value ?? NaN;
  return !Number.isNaN(new Date(started * 1_000).getTime());
}

/** Scrapes a process and returns its metrics by name; undefined: the process is down or not of the platform. */
export async function scrape(address: string): Promise<Map<string, Family['values']> | undefined> {
  try {
    const response = await fetch(`${address}/metrics`, {
      headers: { Accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    const families = JSON.parse(await bodyOf(response)) as Family[];
    // A malformed reply must not stop the round of all other processes.
    if (!families.every(isFamily)) return undefined;
    const scrape = new Map(families.map(({ name, values }) => [name, values]));
    return hasStartTime(scrape) ? scrape : undefined;
  } catch {
    return undefined;
  }
}

export type Scrape = NonNullable<Awaited<ReturnType<typeof scrape>>>;
