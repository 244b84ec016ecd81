import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { internalPortOffset, type Service, services } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { addContainers, addressLines, maxConnections } from './compose.ts';
import { runbookBaseUrl } from './config.ts';

/** A generated list in a file that is written by hand. The pattern matches the whole list, wherever the file has it. */
export type List = readonly [file: string, pattern: RegExp, list: (found: string) => string];

const names = services.map(({ name }) => name);
const withSecret = services.filter((one) => one.hasSecret).toSorted((a, b) => (a.name < b.name ? -1 : 1));
const secretNames = withSecret.map(({ name }) => name);
const onlyPostgres = withSecret.filter(({ stores }) => stores.join() === 'postgres').map(({ name }) => name);

export const linesOf = <T>(items: readonly T[], line: (item: T) => string) => items.map(line).join('');

/** Repeats `item` for each name, with the name in place of `%`. */
const each = (some: readonly string[], item: string, separator = '') =>
  some.map((name) => item.replaceAll('%', name)).join(separator);

/** All images get the registry and version of the first one. */
function images(found: string): string {
  const [, registry, version] = /newName: (.*)\/content-platform\/\S+\n +newTag: (\S+)/.exec(found)!;
  const item = `  - name: content-platform/%\n    newName: ${registry}/content-platform/%\n    newTag: ${version}\n`;
  return each(names, item);
}

/** The secret of a service, as a row of a table. auth's row is written by hand, because auth has keys of its own. */
function secretRow({ name, stores, hasSecret }: Service, found: string): string {
  if (name === 'auth') return /^.*\| auth \|.*\n/m.exec(found)![0];
  const keys = [
    stores.includes('postgres') && '`database-url`',
    '`logs-database-url`',
    stores.includes('redis') && '`redis-url`',
    hasSecret && '`service-secret`: at least 32 characters',
  ];
  return `  | ${name} | ${keys.filter(Boolean).join(', ')} | ${name} |\n`;
}

/** Adds rows of missing services to the table of processes. Edit them afterwards: its rows are written by hand. */
function addRows(found: string): string {
  const known = (name: string) => new RegExp(`^\\| ${name} \\|.*\n`, 'm').exec(found)?.[0];
  const storeNames = { postgres: 'PostgreSQL', redis: 'Redis', kafka: 'Kafka' };
  const row = ({ name, description, stores }: Service) =>
    `| ${name} | ${description} | ${stores.map((store) => storeNames[store]).join(', ')} |\n`;
  return linesOf(services, (service) => known(service.name) ?? row(service));
}

/** How Prometheus finds the processes of a service. */
const dnsName = ({ name, port }: Service) =>
  `      - { names: [${name}], type: A, port: ${port + internalPortOffset}, refresh_interval: 15s }\n`;

/** Every `runbook_url` of a folder begins with RUNBOOK_BASE_URL. */
const runbookUrls = (folder: string): List[] =>
  readdirSync(join(ROOT, folder))
    .map((name) => `${folder}/${name}`)
    .filter((file) => readFileSync(join(ROOT, file), 'utf8').includes('runbook_url: '))
    .map((file) => [file, /(?<=runbook_url: )[^#\n]*(?=#)/g, runbookBaseUrl]);

const image = '${IMAGE_REGISTRY:?set it in .env}/content-platform/%:${IMAGE_TAG:?set it in .env}';
/** migrate runs in the image of auth. */
const pulled = `  %:\n    image: ${image}\n    build: !reset null\n`;
const compose = 'docker-compose.yml';
const kubernetes = 'docs/operations/kubernetes.md';
const architecture = 'docs/concepts/architecture.md';

export const lists: readonly List[] = [
  ...runbookUrls('deploy/prometheus/rules'),
  ...runbookUrls('deploy/prometheus/tests'),
  [compose, /(?<=^services:\n)[^]*?(?=\n {2}# Demo data)/m, addContainers],
  [compose, /(?<=PORT: 8080\n)( {6}\S+_URL: .*\n)+?(?= {6}REDIS)/, () => addressLines('gateway')],
  [compose, /( {6}\S+_INTERNAL_URL: .*\n)+/, () => addressLines('auth')],
  [compose, / {6}CONTENT_CACHE_URL: .*\n {6}INTERNAL_URLS: .*\n/, () => addressLines('pulse')],
  [
    compose,
    /( {6}- \S+:\/secrets\/.*\n)+?(?= {6}- owner)/,
    () => each(names, '      - %-secrets:/secrets/%\n'),
  ],
  [compose, /(?<=max_connections=)\d+/, () => String(maxConnections)],
  [compose, /( {2}\S+-secrets:\n)+?(?= {2}owner)/, () => each(names, '  %-secrets:\n')],
  ['deploy/prometheus/prometheus.compose.yml', /( {6}- \{ names: .*\n)+/, () => linesOf(services, dnsName)],
  [
    'deploy/kubernetes/overlays/production/kustomization.yaml',
    /( {2}- name: content-platform\/.*\n +newName: .*\n +newTag: .*\n)+/,
    images,
  ],
  [
    'deploy/compose/images.yml',
    /( {2}\S+:\n {4}image: .*\n {4}build: .*\n)+/,
    () => each(names, pulled) + each(['auth'], pulled.replace('%', 'migrate')),
  ],
  [
    kubernetes,
    /(?<= {2}\| owner \|.*\n)( {2}\| .*\n)+(?= {2}\| s3 \|)/,
    (found) => linesOf(services, (service) => secretRow(service, found)),
  ],
  [kubernetes, /(?<=for name in )gateway [^;]*(?=; do)/, () => names.join(' ')],
  [kubernetes, /(?<=`service-secrets`: `)[^`]*/, () => each(secretNames, '%:<service-secret of %>', ',')],
  [kubernetes, /(?<=for name in key-secret )[^;]*(?=; do)/, () => each(secretNames, '%-secret', ' ')],
  [kubernetes, /(?<=echo ").*(?=" > service-secrets)/, () => each(secretNames, '%:$(cat %-secret)', ',')],
  [kubernetes, /(?<=for name in )[^;]*(?=; do\n.*=\$name-secret)/, () => onlyPostgres.join(' ')],
  ['deploy/compose/edge.yml', /( {2}\S+: \*public\n)+/, () => each(names.slice(1), '  %: *public\n')],
  [architecture, /(?<=auth & cc\[content-cache\] & ).*/, () => names.slice(3).join(' & ')],
  [architecture, /(?<=auth & cc & ).*(?= --> pg)/, () => onlyPostgres.join(' & ')],
  [architecture, /(?<=\| Process \|.*\n.*\n)(\| .*\n)+/, addRows],
];
