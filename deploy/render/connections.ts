import { join } from 'node:path';
import { services, type Service } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { render } from '../kubernetes/testing/render.ts';
import { find } from '../kubernetes/testing/resources.ts';

/** The connections that so many processes of a service open at most, in both databases. */
const connectionsOf = ({ connections: { platform, logs } }: Service, processes: number): number =>
  processes * (platform + logs);

/** PostgreSQL connections of a stack with this many containers of each service that may have several. */
export const connectionsOfContainers = (count: number): number =>
  services.reduce((sum, service) => sum + connectionsOf(service, service.isSingle ? 1 : count), 0);

/** The most connections of each process, and of the production example while a rollout adds a quarter more processes. */
export function connectionTable(): string {
  const resources = render(join(ROOT, 'deploy', 'kubernetes', 'overlays', 'production'));
  let total = 0;
  const rows = services.map((service) => {
    const processes = find(resources, 'HorizontalPodAutoscaler', service.name)?.spec!.maxReplicas ?? 1;
    total += connectionsOf(service, processes + Math.ceil(processes / 4));
    const { platform, logs } = service.connections;
    return `| ${service.name} | ${platform || ''} | ${logs} | ${processes} |\n`;
  });
  return `| process | database \`platform\` | database \`logs\` | most processes in the production example |
|---|---|---|---|
${rows.join('')}
During a rollout, when each service has a quarter more processes, the production example opens up to ${total} connections.`;
}
