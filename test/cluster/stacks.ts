import { makeCluster } from './redis-cluster/nodes.ts';

/** A stack to test, with its tests in the folder of this name. */
export interface ClusterStack {
  name: string;
  /** Compose files in addition to the common ones. */
  files: string[];
  /** Variables of the Compose files for the brokers' published ports. */
  ports: string[];
  stores: string[];
  redisUrl: (password: string) => string;
  /** Prepares the stores before processes use them. */
  prepare?: () => Promise<void>;
}

export const stacks: ClusterStack[] = [
  {
    name: 'redis-cluster',
    files: ['test/cluster/redis-cluster/kafka.yml', 'test/cluster/redis-cluster/stack.yml'],
    ports: ['TEST_KAFKA_2_PORT', 'TEST_KAFKA_3_PORT'],
    stores: ['postgres', 'kafka', 'kafka-2', 'kafka-3', 'redis-node'],
    redisUrl: (password) => `redis-cluster://:${password}@redis-node:6379`,
    prepare: makeCluster,
  },
  {
    name: 'sentinels',
    files: ['test/cluster/sentinels/stack.yml'],
    ports: [],
    stores: ['postgres', 'kafka', 'sentinel'],
    redisUrl: (password) => `redis-sentinel://:${password}@sentinel:26379/platform`,
  },
];
