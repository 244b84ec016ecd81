import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { environmentWith } from '../../../deploy/local/config.ts';
import { admin } from '../../../test/support/admin.ts';
import { announce, closeEvents } from '../../../test/support/events.ts';
import { type HttpServer, startHttpServer } from '../../../test/support/http-server.ts';
import { read } from '../../../test/support/platform.ts';
import { closeRecords, database, freshId, save } from '../../../test/support/records.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import {
  type Application,
  createConnectedApplication,
  installLimitMs,
  settingsOfStack,
  startDriver,
} from './application.ts';

let application: Application;
let worker: ChildProcess;
let website: HttpServer;
const deadPort = '127.0.0.1:1';

beforeAll(async () => {
  application = await createConnectedApplication();
  const work = ['artisan', 'queue:work', '--queue=platform', '--sleep=0.1'];
  worker = spawn('php', work, {
    cwd: application.folder,
    env: environmentWith(application.env),
    stdio: 'ignore',
  });
  website = await startHttpServer((_, response) => void response.end('<html>'));
}, installLimitMs);
afterAll(async () => {
  worker?.kill('SIGKILL');
  website?.close();
  application?.remove();
  await closeEvents();
  await closeRecords();
});

const check = (env: Record<string, string>, wait = '0') =>
  application.run('php', ['artisan', 'platform:check', `--wait=${wait}`], env);

test('platform:check finds nothing wrong with a complete installation', async () => {
  const kafka = { PLATFORM_VIA: 'kafka', TEST_RDKAFKA: '1', KAFKA_BROKERS: stack().kafka! };
  const { code, output } = await check(kafka, '45');
  const names = ['URL', 'Client', 'Database', 'Queue', 'Worker', 'Kafka'];
  expect({ code, output }).toEqual({ code: 0, output: names.map((name) => `ok    ${name}\n`).join('') });
});

const withPassword = (password: string) =>
  settingsOfStack().PLATFORM_DATABASE_URL.replace(/:[^:@/]+@/, `:${password}@`);

test.each<[string, () => Record<string, string>, RegExp]>([
  [
    'a URL at which no server responds',
    () => ({ PLATFORM_URL: `http://${deadPort}` }),
    /^fail {2}URL: cURL error 7.*\n {6}Set PLATFORM_URL to the gateway's URL/m,
  ],
  [
    'the URL of another server',
    () => ({ PLATFORM_URL: website.origin }),
    /^fail {2}URL: The server at http:\S+ is not the gateway \(GET \/health\)\.\n {6}Set PLATFORM_URL/m,
  ],
  [
    'a slash at the end of the URL',
    () => ({ PLATFORM_URL: `${stack().gateway}/` }),
    /^fail {2}URL: PLATFORM_URL=http:\S+\/ ends with a slash\.\n {6}Set PLATFORM_URL.*without path and slash at its end/m,
  ],
  [
    'a wrong secret',
    () => ({ PLATFORM_SECRET: 'wrong' }),
    /^fail {2}Client: The platform returned 401 .*\n {6}Set PLATFORM_CLIENT and PLATFORM_SECRET.*rotate-client/m,
  ],
  [
    'a wrong database password',
    () => ({ PLATFORM_DATABASE_URL: withPassword('wrong') }),
    /^fail {2}Database: .*password authentication failed[^]*\n {6}Set PLATFORM_DATABASE_URL with the role content_server and its password/m,
  ],
  [
    'the queue driver sync',
    () => ({ QUEUE_CONNECTION: 'sync', PLATFORM_QUEUE_CONNECTION: '' }),
    /^fail {2}Queue: The driver of the queue sync is sync\. It does not keep every job\.\n {6}Set QUEUE_CONNECTION=database or redis/m,
  ],
  [
    'the queue driver failover',
    () => ({ QUEUE_CONNECTION: 'failover' }),
    /^fail {2}Queue: The driver of the queue failover is failover\. It does not keep every job\./m,
  ],
  [
    'a queue without a worker',
    () => ({ QUEUE_CONNECTION: 'sync', PLATFORM_QUEUE_CONNECTION: 'database', PLATFORM_QUEUE: 'unattended' }),
    /^fail {2}Worker: No job was done within 0 s\.\n {6}Keep "php artisan queue:work database --queue=unattended" running/m,
  ],
  [
    'an unreachable Kafka',
    () => ({ PLATFORM_VIA: 'kafka', TEST_RDKAFKA: '1', KAFKA_BROKERS: deadPort }),
    /^fail {2}Kafka: Local: Broker transport failure\n {6}Set KAFKA_BROKERS and start Kafka/m,
  ],
  [
    'a missing Kafka extension',
    () => ({ PLATFORM_VIA: 'kafka', KAFKA_BROKERS: stack().kafka! }),
    /^fail {2}Kafka: The PHP extension rdkafka is not installed\.\n/m,
  ],
])('platform:check finds %s', async (_, env, message) => {
  const { code, output } = await check(env());
  expect(output).toMatch(message);
  expect(code).toBe(1);
});

test('platform:check finds a worker that has another secret', async () => {
  const options = ['--queue=former', '--max-jobs=1', '--sleep=0.1'];
  const former = application.run('php', ['artisan', 'queue:work', ...options], { PLATFORM_SECRET: 'wrong' });
  const { code, output } = await check({ PLATFORM_QUEUE: 'former' }, '45');
  expect(output).toMatch(/^fail {2}Worker: A worker gets no token\. .* 401 .*\n.*queue:restart/m);
  expect(code).toBe(1);
  await former;
});

test('platform:check finds a client without the scope', async () => {
  const name = `reader-${freshId()}`;
  const secret = await admin('create-client', name, '--scope', 'content:read');
  const { code, output } = await check({ PLATFORM_CLIENT: name, PLATFORM_SECRET: secret });
  expect(output).toMatch(
    /^fail {2}Client: The client lacks the scope cache:clear\.\n.*create-client NAME --scope cache:clear/m,
  );
  expect(code).toBe(1);
});

test('announces by Kafka event, and tries again without the confirmation of a broker', async () => {
  const kafka = {
    PLATFORM_VIA: 'kafka',
    TEST_RDKAFKA: '1',
    PLATFORM_QUEUE: 'kafka',
    KAFKA_BROKERS: 'k:9092',
  };
  const driver = startDriver(application, kafka);
  const waiting = () => driver.php("return DB::table('jobs')->where('queue', 'kafka')->count();");
  try {
    const id = freshId();
    await save('webform', id, 'Old');
    await until('it is cached', async () => (await read('webform', id)).cache === 'hit');
    await driver.php(String.raw`RdKafka\Producer::$outcome = -195;
      Webform::find(${id})->update(['title' => 'New']);
      Webform::announceAll();
      work('kafka');`);
    expect(await waiting()).toBe(2);
    // The brokers report nothing in time.
    await driver.php(String.raw`RdKafka\Producer::$outcome = null;
      DB::table('jobs')->update(['available_at' => 0]);
      work('kafka');`);
    expect(await waiting()).toBe(2);
    type Message = Record<'topic' | 'key' | 'value', string>;
    const messages = await driver.php<Message[]>(String.raw`RdKafka\Producer::$outcome = 0;
      RdKafka\Producer::$sent = [];
      DB::table('jobs')->update(['available_at' => 0]);
      work('kafka');
      return collect(RdKafka\Producer::$sent)->sortByDesc('key')->values();`);
    expect(await waiting()).toBe(0);
    const topic = 'cache-invalidation';
    const about = { event_id: expect.any(String), occurred_at: expect.stringMatching(/^20\d\d-.*Z$/) };
    const events = messages.map(({ value, ...rest }) => ({ ...rest, value: JSON.parse(value) as object }));
    expect(events).toEqual([
      { topic, key: `webform:${id}`, value: { model: 'webform', id, change: 'updated', ...about } },
      { topic, key: 'webform:*', value: { pattern: 'webform:*', ...about } },
    ]);
    for (const { key, value } of messages) await announce(value, key);
    // Without the event, the platform would find the change itself.
    const clears = `SELECT FROM content.invalidation WHERE source = 'kafka' AND target = 'webform:${id}'`;
    await until('the event clears the record', async () => (await database().query(clears)).rowCount! > 0);
    expect(await driver.php(String.raw`return RdKafka\Producer::$options;`)).toEqual({
      'metadata.broker.list': 'k:9092',
      'enable.idempotence': 'true',
      'message.timeout.ms': '5000',
    });
  } finally {
    driver.stop();
  }
});
