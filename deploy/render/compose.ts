import { internalPortOffset, portOf, type Service, serviceOf, services } from '@content-platform/contract';
import { settingsOf, type UrlOf } from './settings.ts';

/** `x-addresses` of docker-compose.yml sets these for every process. */
const common = ['AUTH_URL', 'AUTH_INTERNAL_URL', 'LOGS_DATABASE_URL_FILE'];

const urlOf: UrlOf = (name, listener) =>
  `http://${name}:${portOf(name) + (listener === 'internal' ? internalPortOffset : 0)}`;

/** The settings of a service in docker-compose.yml. */
export const composeSettings = (service: Service) => settingsOf(service, urlOf, '/run/secrets');

const settingLines = (service: Service, isWanted: (value: string) => boolean): string =>
  Object.entries(composeSettings(service))
    .filter(([name, value]) => !common.includes(name) && isWanted(value))
    .map(([name, value]) => `      ${name}: ${value}\n`)
    .join('');

/** The lines with the addresses of other services. */
export const addressLines = (name: Service['name']): string =>
  settingLines(serviceOf(name), (value) => value.startsWith('http'));

const newContainer = (service: Service): string => `
  ${service.name}:
    <<: *process
    build: { context: ., dockerfile: deploy/Dockerfile, args: { SERVICE: ${service.name} } }
    mem_limit: ${service.memoryMb}m
    stop_grace_period: ${service.stopSeconds}s
    environment:
      <<: *addresses
${settingLines(service, () => true)}    volumes: ['${service.name}-secrets:/run/secrets:ro']
    networks: [inside, data]
    depends_on: *after-stores
`;

/** Adds the containers of missing services. They are edited by hand afterwards, for example with more settings. */
export function addContainers(found: string): string {
  const isThere = (text: string, name: string) => `\n${text}`.includes(`\n  ${name}:\n`);
  // From the last service to the first, so that the service after a missing one is there already.
  return services.toReversed().reduce((text, service, index, reversed) => {
    if (isThere(text, service.name)) return text;
    const next = reversed[index - 1];
    const container = newContainer(service);
    return next ? text.replace(`\n  ${next.name}:\n`, (place) => container + place) : text + container;
  }, found);
}

/** Connections of three containers of each service, and 55 for a content server, migrations and people. */
export const maxConnections = services.reduce(
  (sum, { isSingle, connections: { platform, logs } }) => sum + (isSingle ? 1 : 3) * (platform + logs),
  55,
);
