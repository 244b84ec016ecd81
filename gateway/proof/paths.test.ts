import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { endpoints, scopes, type Access } from '@content-platform/contract';
import { createAllowlist, type Allowlist } from '../guard/access.ts';
import { startGateway, type TestGateway } from '../testing/gateway.ts';
import { pathVariants, type Variant } from '../testing/path-grammar.ts';
import { createRawClient, envelopeProblem } from '../testing/raw-client.ts';
import { readingsOf } from '../testing/readings.ts';
import { mint, withScopes } from '../testing/tokens.ts';
import { startUpstream, type RecordingUpstream } from '../testing/upstream.ts';
import { writeResult } from '../../test/support/results.ts';

const seed = Number(process.env['PROOF_SEED'] ?? Date.now() % 1_000_000_000);

/** A request for every endpoint of a service. */
const examples: Variant[] = endpoints
  .filter(({ service }) => service !== 'gateway')
  .map(({ method, path }) => ({
    method,
    target: path.replace(':model', 'webform').replace(':identity', 'identity').replace(/:\w+/g, '7'),
  }));
const variants = [...examples, ...pathVariants(examples, 20_000, seed)];
const names = [...new Set(endpoints.map(({ service }) => service))].filter((name) => name !== 'gateway');

const allowlist = createAllowlist(endpoints);
/** Paths by service in lower case, as a service with case-insensitive routing would read them. */
const withoutCase = new Map(
  names.map((name) => {
    const own = endpoints.filter(({ service }) => service === name);
    return [name, createAllowlist(own.map((one) => ({ ...one, path: one.path.toLowerCase() as '/' })))];
  }),
);

let upstreams: Map<(typeof names)[number], RecordingUpstream>;
let gateway: TestGateway;
beforeAll(async () => {
  upstreams = new Map(await Promise.all(names.map(async (name) => [name, await startUpstream()] as const)));
  const services = Object.fromEntries([...upstreams].map(([name, { url }]) => [name, url]));
  gateway = await startGateway({ services });
});
afterAll(async () => {
  await gateway.close();
  for (const upstream of upstreams.values()) await upstream.close();
});

const show = ({ method, target }: Variant) => `${method} ${JSON.stringify(target).slice(0, 300)}`;
const nameAt = (list: Allowlist, path: string, method: string) => list(path)?.get(method)?.name;

/** Describes the error of a request that arrived at a service. */
function problemsOf(service: (typeof names)[number], sent: Variant, arrived: Variant, allowed: Set<Access>) {
  const { method, target } = arrived;
  if (method !== sent.method || target !== sent.target) return [`arrived as ${show(arrived)}`];
  const endpoint = allowlist(target.replace(/\?.*/s, ''))?.get(method);
  if (!endpoint || endpoint.service !== service) return [`arrived at ${service}`];
  if (!allowed.has(endpoint.access)) return [`arrived without ${endpoint.access}`];
  return [...readingsOf(target)].flatMap((reading) => {
    const readAs = nameAt(allowlist, reading, method);
    // No service ignores case or folds look-alikes. A service that did would still require the same scope.
    const folded = reading.normalize('NFKC').toLowerCase();
    const foldedTo = withoutCase.get(service)!(folded)?.get(method)?.access ?? endpoint.access;
    if (readAs === endpoint.name && foldedTo === endpoint.access) return [];
    return [`is ${endpoint.name}, and ${readAs ?? 'nothing'}, or for ${foldedTo}, when read as ${reading}`];
  });
}

let refused = 0;
let forwarded = 0;
let wrongInAll = 0;

async function sendAll(authorization: (index: number) => string | undefined, allowed: Access[]) {
  const wrong: string[] = [];
  for (const upstream of upstreams.values()) upstream.received.splice(0);
  const queue = variants.entries();
  const clients = Array.from({ length: 12 }, async () => {
    const client = createRawClient(gateway.origin);
    for (const [index, variant] of queue) {
      const value = authorization(index);
      const token = value === undefined ? '' : `Authorization: ${value}\r\n`;
      const head = `${variant.method} ${variant.target} HTTP/1.1\r\nHost: gateway.test\r\nX-Request-Id: ${index}\r\n`;
      const reply = await client.ask(`${head}${token}\r\n`);
      if (reply?.status === 200) continue;
      refused += 1;
      const fine = reply !== undefined && reply.status >= 400 && reply.status < 500;
      const problem = fine ? envelopeProblem(reply) : `answered ${reply?.status}`;
      if (problem) wrong.push(`${show(variant)}: ${problem}`);
    }
    client.close();
  });
  await Promise.all(clients);
  for (const [service, { received }] of upstreams) {
    forwarded += received.length;
    for (const { method, url, headers } of received) {
      const sent = variants[Number(headers['x-request-id'])]!;
      const problems = problemsOf(service, sent, { method, target: url }, new Set(allowed));
      if (problems.length > 0) wrong.push(`${show(sent)}: ${problems[0]}`);
    }
  }
  wrongInAll += wrong.length;
  expect({ seed, wrong: wrong.length, first: wrong.slice(0, 20) }).toEqual({ seed, wrong: 0, first: [] });
  return [...upstreams.values()].reduce((sum, { received }) => sum + received.length, 0);
}

test('no spelling of a path bypasses the token check or is read differently by another parser', async () => {
  const invalid = [undefined, 'Bearer a.b.c', `Bearer ${mint({ exp: 1 })}`, 'Basic YTpi'];
  const count = (list: Access[]) =>
    endpoints.filter(({ service, access }) => service !== 'gateway' && list.includes(access)).length;
  const unknown = await sendAll((index) => invalid[index % invalid.length], ['public']);
  const [user, admin] = [`Bearer ${mint()}`, `Bearer ${withScopes(...scopes)}`];
  const plain = await sendAll(() => user, ['public', 'reader', 'user']);
  const all = endpoints.map(({ access }) => access);
  const every = await sendAll(() => admin, all);
  // Plain requests must arrive; otherwise the other checks would prove nothing.
  expect(unknown).toBeGreaterThanOrEqual(count(['public']));
  expect(plain).toBeGreaterThanOrEqual(count(['public', 'reader', 'user']));
  expect(every).toBeGreaterThanOrEqual(count(all));
}, 180_000);
afterAll(() =>
  writeResult('faults', 'paths', {
    seed,
    targets: variants.length,
    requests: 3 * variants.length,
    refused,
    forwarded,
    wrong: wrongInAll,
  }),
);
