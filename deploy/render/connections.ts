import { join } from 'node:path';
import { services, type Service } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { render } from '../kubernetes/testing/render.ts';
import { find } from '../kubernetes/testing/resources.ts';
import { table } from '../../test/support/table.ts';

/** The maximum number of connections of these processes to both databases. */
const connectionsOf = ({ connections: { platform, logs } }: Service, processes: number): number =>
  processes * (platform + logs);

/** PostgreSQL connections of a stack with `count` containers of each service that can have several. */
export const connectionsOfContainers = (count: number): number =>
  services.reduce((sum, service) => sum + connectionsOf(service, service.isSingle ? 1 : count), 0);

/** The table of the connections of each process, and their sum in the production example during a rollout. */
export function connectionTable(): string {
  const resources = render(join(ROOT, 'deploy', 'kubernetes', 'overlays', 'production'));
  let total = 0;
  const rows = services.map((service) => {
    const processes = find(resources, 'HorizontalPodAutoscaler', service.name)?.spec!.maxReplicas ?? 1;
    total += connectionsOf(service, processes + Math.ceil(processes / 4));
    const { platform, logs } = service.connections;
    return [service.name, platform, logs, processes].map(String);
  });
  const head = [
    'process',
    'to database `platform`',
    'to database `logs`',
    'maximum of processes in the production example',
  ];
  return `${table([head, ...rows])}

During a rollout, which adds a quarter of the processes, the production example opens up to ${total} connections.`;
}
