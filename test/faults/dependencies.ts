import { Redis } from 'ioredis';
import { services } from '@content-platform/contract';
import { withDatabase } from '../support/connections.ts';
import { announce } from '../support/events.ts';
import { clear, read } from '../support/platform.ts';
import type { Proxy } from '../support/proxy.ts';
import { freshId, save } from '../support/records.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { model } from './groups.ts';
import { bytes, postgresRefusal, redisRefusal, s3Refusal, text, webServer } from './faulty-servers.ts';
import type { FaultyStack } from './faulty-stack.ts';

export interface Fault {
  name: string;
  on(faultyStack: FaultyStack): unknown;
  off(faultyStack: FaultyStack): unknown;
}

export interface Dependency {
  /** The name in the FAULTS variable. */
  id: string;
  title: string;
  faults: Fault[];
  /** The requests that are not tested, and why. */
  leftOut?: string;
  /** Minimum duration of the fault before the second round of requests, in ms. */
  lastsMs?: number;
  /** Time limit for the recovery, in ms; 60 s by default. */
  backWithinMs?: number;
  /** Run before the first fault and after the last one. */
  begin?(faultyStack: FaultyStack): Promise<void>;
  end?(faultyStack: FaultyStack): Promise<void>;
  /** Checks the recovery of work that no gateway request shows. Returns false or throws until it has recovered. */
  isBack?(faultyStack: FaultyStack): Promise<boolean>;
}

const slowMs = 5_000;

function throughProxy(dependency: string, name: string, begin: (proxy: Proxy) => unknown): Fault {
  return {
    name,
    on: ({ proxies }) => Promise.all(proxies.of(dependency).proxies.map(begin)),
    off: ({ proxies }) => Promise.all(proxies.of(dependency).proxies.map((proxy) => proxy.repair())),
  };
}

const networkFaults = (dependency: string): Fault[] => [
  throughProxy(dependency, 'unreachable', (proxy) => proxy.refuseConnections()),
  throughProxy(dependency, 'slow: 5 s', (proxy) => proxy.delay(slowMs)),
  throughProxy(dependency, 'no response', (proxy) => proxy.hold()),
  throughProxy(dependency, 'connections reset', (proxy) => proxy.reset()),
];
const answersWith = (dependency: string, name: string, handler: Parameters<Proxy['replace']>[0]): Fault =>
  throughProxy(dependency, name, (proxy) => proxy.replace(handler));
const garbage = (dependency: string) => answersWith(dependency, 'garbage', bytes);
/** The reply of a web server, then silence: a client of another protocol waits for the rest. */
const otherProtocol = (dependency: string) => answersWith(dependency, 'wrong protocol', text);
const foreign = (dependency: string) => answersWith(dependency, 'foreign HTTP 500', webServer(500));

/** PostgreSQL stops when it cannot extend its log, and only restarts once there is space. */
const postgresFull: Fault = {
  name: 'full disk',
  async on({ disks, postgres }) {
    await disks.postgres.fill();
    await until('PostgreSQL has given up', async () => {
      if (!postgres.isUp()) return true;
      // As the server's superuser, bypassing the proxies.
      const owner = { connectionString: stack().postgres, connectionTimeoutMillis: 1_000 };
      const extend = 'SELECT pg_switch_wal(), txid_current()';
      await withDatabase(owner, (client) => client.query(extend)).catch(() => undefined);
      return false;
    });
  },
  off: ({ disks }) => disks.postgres.free(),
};

/** Redis refuses writes that it cannot save. */
const redisFull: Fault = {
  name: 'full disk',
  async on({ disks, redis }) {
    await disks.redis.fill();
    await until('Redis refuses to write', async () => {
      const answer = await redis.admin
        .set('ballast', 'x'.repeat(10_000))
        .catch((error: Error) => error.message);
      return answer.startsWith('MISCONF');
    });
  },
  off: ({ disks }) => disks.redis.free(),
};

const redisReadOnly: Fault = {
  name: 'read-only replica (READONLY)',
  on: ({ redis }) => redis.admin.replicaof('127.0.0.1', 1),
  off: ({ redis }) => redis.admin.replicaof('NO', 'ONE'),
};

const keeper = { username: 'keeper', password: 'of-the-tests' };
/** Restores the rights as another user, because the default user lost them. */
const redisNoRights: Fault = {
  name: 'missing ACL rights (NOPERM)',
  async on({ redis: { admin } }) {
    const { username, password } = keeper;
    await admin.acl('SETUSER', username, 'on', `>${password}`, '~*', '&*', '+@all');
    await admin.acl('SETUSER', 'default', '-@all');
  },
  async off({ redis: { url } }) {
    const other = new Redis(url, keeper);
    await other.acl('SETUSER', 'default', '+@all');
    other.disconnect();
  },
};

async function eventArrives(): Promise<boolean> {
  const id = freshId();
  await save(model, id, 'Old');
  await until('it is cached', async () => (await read(model, id)).cache === 'hit', 5_000);
  await save(model, id, 'New');
  await announce(JSON.stringify({ model, id }), `${model}:${id}`);
  await until('the event is carried out', async () => (await read(model, id)).title === 'New', 20_000);
  return true;
}

async function traceArrives({ collector }: FaultyStack): Promise<boolean> {
  const before = collector.spans.length;
  await clear(model, freshId());
  return until('a span arrives', () => collector.spans.length > before, 5_000);
}

const upstreams = services.map(({ name }) => name).filter((name) => name !== 'gateway');

export const dependencies: Dependency[] = [
  {
    id: 'postgres',
    title: 'PostgreSQL',
    faults: [
      ...networkFaults('postgres'),
      postgresFull,
      answersWith('postgres', 'too many connections (53300)', postgresRefusal('53300')),
      answersWith('postgres', 'wrong password (28P01)', postgresRefusal('28P01')),
      garbage('postgres'),
      otherProtocol('postgres'),
    ],
  },
  {
    id: 'logs',
    title: 'Logs database',
    faults: [
      ...networkFaults('logs'),
      answersWith('logs', 'no such database (3D000)', postgresRefusal('3D000')),
      garbage('logs'),
      otherProtocol('logs'),
    ],
    leftOut: 'a full disk, because rows are dropped and counted in each of the tested faults too.',
  },
  {
    id: 'redis',
    title: 'Redis',
    faults: [
      ...networkFaults('redis'),
      redisFull,
      redisReadOnly,
      redisNoRights,
      answersWith(
        'redis',
        'loading (LOADING)',
        redisRefusal('LOADING Redis is loading the dataset in memory'),
      ),
      garbage('redis'),
      otherProtocol('redis'),
    ],
  },
  {
    id: 'kafka',
    title: 'Kafka',
    faults: [...networkFaults('kafka'), garbage('kafka'), otherProtocol('kafka')],
    leftOut: 'a full disk, because a Kafka broker with a full disk stops and is unreachable.',
    // Longer than the consumer's session timeout.
    lastsMs: 12_000,
    backWithinMs: 120_000,
    isBack: eventArrives,
  },
  {
    id: 's3',
    title: 'S3',
    faults: [
      ...networkFaults('s3'),
      answersWith('s3', 'access denied (403)', s3Refusal()),
      foreign('s3'),
      garbage('s3'),
    ],
    leftOut: 'a full disk of the S3 server, because clients see it as HTTP 500.',
    begin: ({ useS3 }) => useS3(true),
    end: ({ useS3 }) => useS3(false),
  },
  {
    id: 'files',
    title: 'Folder of uploaded files',
    faults: [
      {
        name: 'full disk',
        on: ({ disks: { media } }) => media.fill(),
        off: ({ disks }) => disks.media.free(),
      },
      {
        name: 'read-only',
        on: ({ disks }) => disks.media.readOnly(true),
        off: ({ disks }) => disks.media.readOnly(false),
      },
    ],
    leftOut: 'network faults, because the folder is a local disk.',
  },
  {
    id: 'identity',
    title: 'Identity provider',
    faults: [...networkFaults('identity'), foreign('identity'), garbage('identity')],
  },
  ...upstreams.map((id) => ({
    id,
    title: `Service ${id}`,
    faults: [...networkFaults(id), foreign(id), garbage(id)],
  })),
  {
    id: 'collector',
    title: 'Trace collector',
    faults: [...networkFaults('collector'), foreign('collector'), garbage('collector')],
    isBack: traceArrives,
  },
];
