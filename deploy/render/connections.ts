import { join } from 'node:path';
import { services, type Service } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { render } from '../kubernetes/testing/render.ts';
import { find } from '../kubernetes/testing/resources.ts';

/** The rows of the table of connections in docs/scaling.md: one for each service. */
export const connectionRows = (): string =>
  services
    .map(({ name, connections: { platform, logs } }) => `  | ${name} | ${platform || ''} | ${logs} |\n`)
    .join('');

/** The connections that so many processes of a service open at most, in both databases. */
const connectionsOf = ({ connections: { platform, logs } }: Service, processes: number): number =>
  processes * (platform + logs);

/** PostgreSQL connections of a stack with this many containers of each service that may have several. */
export const connectionsOfContainers = (count: number): number =>
  services.reduce((sum, service) => sum + connectionsOf(service, service.isSingle ? 1 : count), 0);

/** The sentence in docs/scaling.md on the production example, during a rollout with a quarter more processes. */
export function connectionTotal(): string {
  const resources = render(join(ROOT, 'deploy', 'kubernetes', 'overlays', 'production'));
  const most = services.map((service) => ({
    service,
    processes: find(resources, 'HorizontalPodAutoscaler', service.name)?.spec!.maxReplicas ?? 1,
  }));
  const total = most.reduce(
    (sum, { service, processes }) => sum + connectionsOf(service, processes + Math.ceil(processes / 4)),
    0,
  );
  const list = most.map(({ service, processes }) => `${service.name} ${processes}`).join(', ');
  return `With the most processes that the example for production allows (${list}) that is ${total}.`;
}
