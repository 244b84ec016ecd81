import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import { parse } from 'yaml';
import { services } from '@content-platform/contract';
import { ROOT } from '../local/config.ts';
import { compose } from '../testing/compose.ts';
import { render } from './testing/render.ts';
import { environmentOf, find, podOf } from './testing/resources.ts';

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');
const production = render(join(import.meta.dirname, 'overlays', 'production'));
const script = read('deploy', 'compose', 'kafka-users.sh');
const environment = (name: string) => environmentOf(find(production, 'Deployment', name)!, production);

test('content-cache logs in to Kafka over TLS, with the user name and rights that it has in Compose', () => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: user } =
    compose.services['content-cache']!.environment!;
  expect(environment('content-cache')).toMatchObject({
    KAFKA_SSL: 'true',
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: user,
    KAFKA_SASL_PASSWORD_FILE: '/run/secrets/kafka/password',
  });
  expect(script).toContain(`--allow-principal User:${user} `);
});

test('a job gives the users of Kafka their passwords and rights, with the script and the image of Compose', () => {
  const { spec } = parse(read('deploy', 'kubernetes', 'kafka-users.yaml')) as Job;
  const { containers, volumes, securityContext } = spec!.template.spec!;
  const [container] = containers;
  expect(container!.image).toBe(compose.services['kafka-users']!.image);
  expect(container!.command).toEqual(['bash', '/script/kafka-users.sh']);
  for (const { name } of container!.env!) expect(script).toContain(`\${${name}:-`);
  expect(
    volumes!.map(({ name, secret, configMap }) => [name, secret?.secretName ?? configMap?.name]),
  ).toEqual([
    ['script', 'kafka-users'],
    ['secrets', 'kafka-users'],
    ['tmp', undefined],
  ]);
  // The pods of the platform, which are tested, run with the same rights.
  const { spec: pod, container: other } = podOf(find(production, 'Deployment', 'letters')!);
  expect(securityContext).toEqual(pod.securityContext);
  expect(container!.securityContext).toEqual(other.securityContext);
});

test('each service reads its own login to PostgreSQL and Redis', () => {
  for (const { name, schema, redis } of services) {
    const { DATABASE_URL_FILE, LOGS_DATABASE_URL_FILE, REDIS_URL_FILE } = environment(name);
    expect([DATABASE_URL_FILE, LOGS_DATABASE_URL_FILE, REDIS_URL_FILE]).toEqual([
      schema && `/run/secrets/${name}/database-url`,
      `/run/secrets/${name}/logs-database-url`,
      redis && `/run/secrets/${name}/redis-url`,
    ]);
  }
});
