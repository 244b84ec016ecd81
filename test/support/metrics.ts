import { stack } from './stack.ts';

interface Family {
  name: string;
  values: { metricName?: string; labels: Record<string, string | number>; value: number }[];
}

/** A series and its value, `name{label="value",…}` with the labels in alphabetical order. */
export type Series = Map<string, number>;

function seriesName(name: string, labels: Record<string, string | number>): string {
  const list = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .toSorted();
  return list.length > 0 ? `${name}{${list.join(',')}}` : name;
}

/** Every series of a process of the stack as it is now. Node's own metrics, and those of the process, are left out. */
export async function scrape(service: string): Promise<Series> {
  const { internal } = stack().services[service]!;
  const response = await fetch(`${internal}/metrics`, { headers: { Accept: 'application/json' } });
  const families = (await response.json()) as Family[];
  return new Map(
    families
      .filter(({ name }) => !/^(nodejs|process)_/.test(name))
      .flatMap(({ name, values }) =>
        values.map(
          ({ metricName = name, labels, value }) => [seriesName(metricName, labels), value] as const,
        ),
      ),
  );
}

/** The same of all processes, by their names. */
export async function scrapeAll(): Promise<Map<string, Series>> {
  const names = Object.keys(stack().services);
  return new Map(await Promise.all(names.map(async (name) => [name, await scrape(name)] as const)));
}

/** What has changed from one scrape to the next, gauges and new series included. */
export function changes(before: Series, after: Series): Series {
  return new Map(
    [...after]
      .map(([series, value]) => [series, value - (before.get(series) ?? 0)] as const)
      .filter(([series, change]) => change !== 0 || !before.has(series)),
  );
}
