import { stack } from './stack.ts';

interface Family {
  name: string;
  values: { metricName?: string; labels: Record<string, string | number>; value: number }[];
}

/** Values by series: `name{label="value",…}` with the labels in alphabetical order. */
export type Series = Map<string, number>;

function seriesName(name: string, labels: Record<string, string | number>): string {
  const list = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .toSorted();
  return list.length > 0 ? `${name}{${list.join(',')}}` : name;
}

/** Returns the current series of a process, without the metrics that Node and the process provide themselves. */
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

export async function scrapeAll(): Promise<Map<string, Series>> {
  const names = Object.keys(stack().services);
  return new Map(await Promise.all(names.map(async (name) => [name, await scrape(name)] as const)));
}
