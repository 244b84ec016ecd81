import { lookup } from 'node:dns/promises';
import { withTimeout } from '@content-platform/chassis';

/** A metric in prom-client's JSON. `metricName`: the name of a part, such as a bucket, sum or count. */
export interface Family {
  name: string;
  values: { labels: Readonly<Record<string, string | number>>; value: number; metricName?: string }[];
}

/** A process that does not answer in this time is down. */
const timeoutMs = 2_000;
/** Ten times as many as all series of a process have. */
const maxBytes = 10_000_000;

/** Returns the URL of each process behind a name, IPv4 preferred; the URL itself if it cannot be resolved. */
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

/**
 * Reads JSON from a process. Throws if the reply is longer than `maxBytes`. Each call has a time limit of its own: while a
 * store hangs, each of /metrics and /health/ready takes a second.
 */
async function readJson(url: string): Promise<unknown> {
  const headers = { Accept: 'application/json' };
  const response = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString());
}

const isSeries = (one: Partial<Family['values'][number]> | null) =>
  // JSON has null for NaN, the value of a gauge before its first measurement.
  (typeof one?.value === 'number' || one?.value === null) &&
  typeof (one.labels ?? undefined) === 'object' &&
  typeof (one.metricName ?? '') === 'string';
const isFamily = (one: Partial<Family> | null) =>
  typeof one?.name === 'string' && Array.isArray(one.values) && one.values.every(isSeries);

/** The values of a process's metrics by name. */
export type Scrape = ReadonlyMap<string, Family['values']>;

/** Gauges that keep their last value while their store is unavailable; /pulse then ignores them. Add new ones here. */
const storeOfGauge = { failed_jobs_open: 'postgres', cache_memory_bytes: 'redis' };

/** Returns the states of a process's dependencies by name. */
async function checksOf(address: string): Promise<Record<string, string> | undefined> {
  return ((await readJson(`${address}/health/ready`)) as { checks?: Record<string, string> }).checks;
}

/** Scrapes a process; undefined: it is down or not of the platform. */
export async function scrape(address: string): Promise<Scrape | undefined> {
  try {
    const families = (await readJson(`${address}/metrics`)) as Family[];
    // A malformed reply must not stop the round of all other processes.
    if (!families.every(isFamily)) return undefined;
    const values = new Map(families.map((family) => [family.name, family.values]));
    const kept = Object.entries(storeOfGauge).filter(([name]) => values.has(name));
    const checks = kept.length > 0 ? await checksOf(address).catch(() => undefined) : undefined;
    for (const [name, store] of kept) if (checks?.[store] !== 'ok') values.delete(name);
    // Every process of the platform reports its start.
    const startedAt = new Date((values.get('process_start_time_seconds')?.[0]?.value ?? NaN) * 1_000);
    return Number.isNaN(startedAt.getTime()) ? undefined : values;
  } catch {
    return undefined;
  }
}
