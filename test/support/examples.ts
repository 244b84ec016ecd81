import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { Endpoint } from '@content-platform/contract';
import { examplesFile, readExamples, type Example } from '@content-platform/contract/examples';
import { stack } from './stack.ts';

type Json = Record<string, unknown>;
export type Call = Omit<Partial<Example>, 'path'> & { params?: unknown };

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Replaces secrets, uploaded bytes and the URLs of the test's processes; shortens arrays. */
function clean(value: unknown, name = ''): unknown {
  if (value instanceof File) return `<content of ${value.name}>`;
  if (typeof value === 'string') {
    const isSecret = /(password|secret|token|verifier)$/.test(name);
    if (isSecret) return `<${name}>`;
    return value
      .replaceAll(stack().gateway, 'https://api.example.com')
      .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'https://internal.example.com')
      .replace(/eyJ[\w.-]+/g, '<token>')
      .replace(/secret=\w+/, 'secret=<secret>')
      .replace(/-[0-9a-f]{8}-[0-9a-f-]{27}(?=@|%40)/g, '');
  }
  if (Array.isArray(value))
    return (isObject(value[0]) ? value.slice(0, 1) : value).map((item) => clean(item));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item, key)]));
}

/** Returns path or query parameters with integers as numbers. */
function typed(object: z.ZodObject | undefined, values: unknown): Json {
  const shape = (object?.shape ?? {}) as Record<string, z.ZodType>;
  const named = Object.entries((values ?? {}) as Record<string, string | number>);
  return Object.fromEntries(
    named.map(([name, value]) => {
      const isInteger = shape[name] && z.toJSONSchema(shape[name], { io: 'input' }).type === 'integer';
      return [name, isInteger ? Number(value) : clean(value, name)];
    }),
  );
}

function exampleOf(endpoint: Endpoint, { params, query, headers, body, status, reply }: Call): Example {
  const schema = endpoint.responses[status!]?.schema;
  // Keeps only the fields that the contract names.
  const named = schema instanceof z.ZodObject ? schema.strip().parse(reply) : reply;
  const known = Object.entries(headers ?? {}).filter(
    ([name]) => name !== 'Authorization' && endpoint.headers?.[name],
  );
  const parts = {
    path: typed(endpoint.params, params),
    query: typed(endpoint.query, query),
    headers: Object.fromEntries(known),
    body: clean(body),
  };
  const used = Object.entries(parts).filter(
    ([, part]) => part !== undefined && Object.keys(part as Json).length > 0,
  );
  return { ...Object.fromEntries(used), status: status!, ...(schema && { reply: clean(named) }) };
}

const leaves = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((sum, item) => sum + leaves(item), 0)
    : Number(value !== null && value !== undefined);

const rank = (example: Example) => leaves(example) - JSON.stringify(example).length / 300;

/** Fields whose keys the contract leaves open. */
const open = ['body', 'details', 'services'];

function hasFields(example: unknown, reply: unknown): boolean {
  if (Array.isArray(example) && Array.isArray(reply))
    return example.length === 0 || reply.length === 0 || reply.some((item) => hasFields(example[0], item));
  if (!isObject(example) || !isObject(reply)) return true;
  const names = Object.keys(example);
  return (
    names.toSorted().join() === Object.keys(reply).toSorted().join() &&
    names.every((name) => open.includes(name) || hasFields(example[name], reply[name]))
  );
}

/**
 * Compares the contract's example with a test's calls. Throws if no reply has its fields; the file then has a new one.
 */
export function checkExample(endpoint: Endpoint, calls: readonly Call[]): void {
  const found = calls.map((call) => exampleOf(endpoint, call));
  const { [endpoint.name]: stored, ...others } = readExamples();
  const same = found.filter(({ status }) => status === stored?.status);
  if (stored && same.some(({ reply }) => hasFields(stored.reply, reply))) return;
  const [best] = found.toSorted((one, other) => rank(other) - rank(one));
  if (!best) throw new Error(`No call of ${endpoint.name} succeeded.`);
  const all = Object.entries({ ...others, [endpoint.name]: best }).toSorted(([one], [other]) =>
    one < other ? -1 : 1,
  );
  writeFileSync(examplesFile, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  throw new Error(
    `services/contract/examples.json has a new example of ${endpoint.name}: check and commit it.`,
  );
}
