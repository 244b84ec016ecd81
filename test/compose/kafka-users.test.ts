import { expect, test } from '@jest/globals';
import { cacheInvalidation } from '@content-platform/contract';
import { compose } from './docker.ts';

const { topic, group } = cacheInvalidation;
/** kafkajs reports a group that it may not see as one without a coordinator, and refused topics as an aggregate. */
const notAllowed = /AUTHORIZATION_FAILED|GroupCoordinatorNotFound|AggregateError/;

/** Runs code with a Kafka client in the container of content-cache. Returns the type of the error, or `done`. */
function run(user: string, password: string, code: string): Promise<string> {
  const sasl = user && { mechanism: 'scram-sha-512', username: user, password };
  const script = `
    const { Kafka } = require('kafkajs');
    const kafka = new Kafka({ brokers: ['kafka:9092'], logLevel: 0, connectionTimeout: 3000, retry: { retries: 1 },
      ${sasl ? `sasl: ${JSON.stringify(sasl)}` : ''} });
    (async () => { ${code} })()
      .then(() => 'done', (error) => error.type ?? error.cause?.type ?? error.cause?.name ?? error.name)
      .then((outcome) => { console.log(outcome); process.exit(0); });`;
  return compose('exec', '-T', 'content-cache', 'node', '--no-warnings', '-e', script);
}

const write = (to: string) => `const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic: '${to}', acks: -1, messages: [{ key: 'webform:1', value: '{"model":"webform","id":1}' }] });`;
const asAdmin = (call: string) => `const admin = kafka.admin();
  await admin.connect();
  await admin.${call};`;
const createTopic = (name: string) =>
  asAdmin(`createTopics({ waitForLeaders: false, topics: [{ topic: '${name}', numPartitions: 1 }] })`);
const deleteTopic = asAdmin(`deleteTopics({ topics: ['${topic}'] })`);
const readAs = (name: string) => asAdmin(`fetchOffsets({ groupId: '${name}', topics: ['${topic}'] })`);

const passwordOf = (user: string) =>
  compose('run', '--rm', '-T', '--no-deps', 'kafka-users', 'cat', `/run/secrets/${user}-password`);

test('Kafka refuses clients without a login or with a wrong password', async () => {
  expect(await run('', '', write(topic))).not.toBe('done');
  expect(await run('content-server', 'wrong', write(topic))).toMatch(/SASL/);
});

test.each([
  ['content-server', write(topic), [readAs(group), createTopic('planted'), deleteTopic]],
  ['content-cache', readAs(group), [write(topic), readAs('another'), createTopic('planted')]],
])('%s writes or reads events, and does nothing else', async (user, allowed, refused) => {
  const password = await passwordOf(user);
  expect(await run(user, password, allowed)).toBe('done');
  for (const code of refused) expect(await run(user, password, code)).toMatch(notAllowed);
});
