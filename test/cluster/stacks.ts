import { makeCluster } from './redis-cluster/nodes.ts';

/** What is brought up, one after the other; each has a folder of this name with its tests. */
export interface ClusterStack {
  name: string;
  /** Beside those that all have. */
  files: string[];
  /** Ports on which brokers are published, as the files name them. */
  ports: string[];
  stores: string[];
  redisUrl: (password: string) => string;
  /** What the stores need before processes use them. */
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
