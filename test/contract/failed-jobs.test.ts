import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../support/accounts.ts';
import { announce, closeEvents, type Sent } from '../support/events.ts';
import { closeRecords, database, freshId, save } from '../support/records.ts';
import { read } from '../support/platform.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { describeEndpoint } from './describe-endpoint.ts';

type Job = contract.FailedJob;
const path = '/api/admin/failed-jobs';
const { gateway } = stack();

/** The failed job of a message, once the consumer has come to it. */
async function jobOf({ partition, offset }: Sent): Promise<Job> {
  const token = await tokenOf(gateway, 'sre');
  return until('the failed job is listed', async () => {
    const { body } = await call(gateway, contract.listFailedJobs, { token, query: { limit: 100 } });
    return body?.items.find((job) => job.partition === partition && job.offset === offset);
  });
}

/** A job that succeeds when it is retried: as left behind by an older version that did not know the model yet. */
async function retryableJob(id: number, model: contract.Model = 'webform'): Promise<number> {
  const value = Buffer.from(JSON.stringify({ model, id }));
  const { rows } = await database().query<{ id: string }>(
    `INSERT INTO content.failed_job (class, error, topic, "partition", "offset", key, value, model, message_at)
     VALUES ('unknown_model', 'unknown model', 'cache-invalidation', 0, $1, NULL, $2, $3, 0) RETURNING id`,
    [freshId(), value, model],
  );
  return Number(rows[0]!.id);
}

let example: Job;
beforeAll(async () => {
  example = await jobOf(await announce('not json'));
});
afterAll(async () => {
  await closeEvents();
  await closeRecords();
});

const badFilters = ['state=closed', 'model=x', 'since=yesterday'];
const badQueries = [
  ...badFilters,
  'limit=0',
  'limit=101',
  'class=other',
  'since=0000-01-01T00:00:00Z',
  `since=2020-01-01T00:00:00.${'1'.repeat(60)}Z`,
  'cursor=!',
];

describeEndpoint(
  contract.listFailedJobs,
  { path, as: 'sre', invalid: { queries: badQueries } },
  ({ ask }) => {
    const record = freshId();
    const key = `webform:${record}`;
    test.each<[string, string | Buffer | null, Job['class']]>([
      ['not JSON', '{"model":', 'not_json'],
      ['null', null, 'empty'],
      ['nothing', '', 'empty'],
      ['1 MB', Buffer.alloc(900_000, 'x'), 'too_large'],
      ['an unknown model', '{"model":"letter","id":1}', 'unknown_model'],
      ['an id as string', '{"model":"webform","id":"1"}', 'invalid_event'],
      ['an array', '[]', 'invalid_event'],
      ['the bytes 0x00 and 0xFF', Buffer.from([0x00, 0xff]), 'not_json'],
    ])('an event that is %s is a failed job, and the consumer goes on', async (_, value, failedClass) => {
      const job = await jobOf(await announce(value, key));
      expect(job).toMatchObject({
        class: failedClass,
        topic: 'cache-invalidation',
        state: 'open',
        attempts: 1,
      });
      const bytes =
        job.value === null ? null : Buffer.from(job.value, job.encoding === 'utf8' ? 'utf8' : 'base64');
      // As text: byte by byte a megabyte takes jest seconds.
      expect(bytes?.toString('base64')).toBe(
        value === null ? undefined : Buffer.from(value).toString('base64'),
      );

      await save('webform', record, 'Old');
      await read('webform', record);
      await save('webform', record, 'New');
      await announce(JSON.stringify({ model: 'webform', id: record }), key);
      await until(
        'the good event behind it is carried out',
        async () => (await read('webform', record)).title === 'New',
      );
    });

    test.each([
      ["with another record's key", 'condition:1', {}],
      ['without a key', null, {}],
      ['from the future', key, { occurred_at: '2999-01-01T00:00:00Z' }],
      ['with a field we do not know', key, { tenant: 'x' }],
    ])('an event %s clears its record', async (_, eventKey, more) => {
      await save('webform', record, 'Old');
      await read('webform', record);
      await save('webform', record, 'New');
      await announce(JSON.stringify({ model: 'webform', id: record, ...more }), eventKey);
      await until('the event is carried out', async () => (await read('webform', record)).title === 'New');
    });

    test('pages, newest first, by class, model, state and time', async () => {
      await jobOf(await announce('still not json'));
      const first = await ask({ query: { limit: 1, class: 'not_json' } });
      const second = await ask({ query: { limit: 1, class: 'not_json', cursor: first.body!.next_cursor! } });
      expect(second.body!.items[0]!.id).toBeLessThan(first.body!.items[0]!.id);
      const classes = (await ask({ query: { class: 'empty' } })).body!.items.map((job) => job.class);
      expect(new Set(classes)).toEqual(new Set(['empty']));
      expect((await ask({ query: { since: '2999-01-01T00:00:00Z' } })).body).toEqual({
        items: [],
        next_cursor: null,
      });
      const id = await retryableJob(freshId());
      expect((await ask({ query: { model: 'webform' } })).body!.items.map((job) => job.id)).toContain(id);
      expect((await ask({ query: { model: 'pathway' } })).body!.items.map((job) => job.id)).not.toContain(id);
    });
  },
);

const classes = {
  path: `${path}/classes`,
  as: 'sre',
  invalid: { queries: [...badFilters, 'class=empty', 'limit=1'] },
} as const;

describeEndpoint(contract.listFailedJobClasses, classes, ({ ask }) => {
  const group = async (name: Job['class'], query = {}) =>
    (await ask({ query })).body!.items.find((each) => each.class === name);

  test('an event that fails is counted with its class, and is its example', async () => {
    await jobOf(await announce(''));
    const before = (await group('empty'))!;
    const newest = await jobOf(await announce(''));
    expect(await group('empty')).toEqual({
      class: 'empty',
      count: before.count + 1,
      first_failed_at: before.first_failed_at,
      last_failed_at: newest.failed_at,
      example: newest,
    });
    const since = { since: newest.failed_at };
    expect(await group('empty', since)).toMatchObject({ count: 1, first_failed_at: newest.failed_at });
  });

  test('a group that was tried again is counted with the retried ones', async () => {
    // A model whose jobs nobody else tries again.
    const model = 'accesscode';
    const query = { model };
    const id = await retryableJob(freshId(), model);
    expect(await group('unknown_model', query)).toMatchObject({ example: { id, state: 'open' } });
    const token = await tokenOf(gateway, 'sre');
    const body = { class: 'unknown_model', model, per_second: 1000 } as const;
    expect((await call(gateway, contract.retryFailedJobs, { body, token })).body).toMatchObject({
      failed: 0,
    });
    expect(await group('unknown_model', query)).toBeUndefined();
    const retried = await group('unknown_model', { ...query, state: 'retried' });
    expect(retried).toMatchObject({ example: { id, state: 'retried' } });
  });
});

describeEndpoint(
  contract.readFailedJob,
  { path: `${path}/9007199254740991`, as: 'admin', isMissing: true },
  ({ ask }) => {
    test('one job', async () => {
      expect((await ask({ params: { id: example.id } })).body).toEqual(example);
    });
  },
);

describeEndpoint(
  contract.retryFailedJob,
  { path: `${path}/9007199254740991/retry`, as: 'sre', isMissing: true },
  ({ ask }) => {
    test('a job that works now is done, and the record cleared', async () => {
      const record = freshId();
      await save('webform', record, 'Old');
      await read('webform', record);
      await save('webform', record, 'New');
      const id = await retryableJob(record);
      expect(await ask({ params: { id } })).toMatchObject({
        status: 200,
        body: { id, state: 'retried', attempts: 2 },
      });
      expect(await read('webform', record)).toMatchObject({ title: 'New' });
    });
    test('a job that fails again stays open and says why', async () => {
      const { id } = await jobOf(await announce('never json'));
      const answer = await ask({ params: { id } });
      expect(answer.error).toMatchObject({ error: 'retry_failed', code: 409 });
      const token = await tokenOf(gateway, 'sre');
      const { body } = await call(gateway, contract.readFailedJob, { params: { id }, token });
      expect(body).toMatchObject({ state: 'open', attempts: 2 });
    });
  },
);

describeEndpoint(
  contract.retryFailedJobs,
  {
    path: `${path}/retry`,
    as: 'sre',
    body: { dry_run: true },
    invalid: {
      fields: [{ per_second: 0 }, { per_second: 1.5 }, { class: 'x' }, { dry_run: 'yes' }, { extra: 1 }],
    },
  },
  ({ ask }) => {
    test('a dry run counts, a run retries those that match', async () => {
      const ids = [await retryableJob(freshId()), await retryableJob(freshId())];
      const filter = { class: 'unknown_model', model: 'webform' } as const;
      const dry = await ask({ body: { ...filter, dry_run: true } });
      expect(dry.body!.matched).toBeGreaterThanOrEqual(2);
      expect(dry.body).toMatchObject({ retried: 0, failed: 0 });
      const run = await ask({ body: { ...filter, per_second: 1000 } });
      expect(run.body).toEqual({ matched: dry.body!.matched, retried: dry.body!.matched, failed: 0 });
      const { rows } = await database().query('SELECT state FROM content.failed_job WHERE id = ANY($1)', [
        ids,
      ]);
      expect(rows).toEqual([{ state: 'retried' }, { state: 'retried' }]);
    });
  },
);

describeEndpoint(
  contract.deleteFailedJobs,
  {
    path,
    as: 'sre',
    body: { class: 'unknown_model', model: 'condition', dry_run: true },
    invalid: {
      fields: [{ class: 'x' }, { state: 'closed' }, { since: 'yesterday' }, { dry_run: 'yes' }, { extra: 1 }],
      bodies: [{}, { dry_run: false }],
    },
  },
  ({ ask }) => {
    test('a dry run counts, a run deletes those that match', async () => {
      // A model whose jobs nobody else looks at.
      const filter = { class: 'unknown_model', model: 'condition' } as const;
      const ids = [
        await retryableJob(freshId(), 'condition'),
        await retryableJob(freshId(), 'condition'),
        await retryableJob(freshId(), 'pathway'),
      ];
      expect((await ask({ body: { ...filter, dry_run: true } })).body).toEqual({ matched: 2, deleted: 0 });
      expect((await ask({ body: filter })).body).toEqual({ matched: 2, deleted: 2 });
      const { rows } = await database().query<{ id: string }>(
        'SELECT id FROM content.failed_job WHERE id = ANY($1)',
        [ids],
      );
      expect(rows.map(({ id }) => Number(id))).toEqual([ids[2]]);
    });
  },
);

describeEndpoint(
  contract.deleteFailedJob,
  { path: `${path}/9007199254740991`, as: 'sre', isMissing: true },
  ({ ask }) => {
    test('a job is forgotten', async () => {
      const id = await retryableJob(freshId());
      expect(await ask({ params: { id } })).toMatchObject({ status: 204 });
      expect((await ask({ params: { id } })).error?.error).toBe('not_found');
    });
  },
);

describe('redelivery', () => {
  test('the same event twice is two messages, each its own job', async () => {
    const value = `not json ${randomUUID()}`;
    const [first, second] = [await jobOf(await announce(value)), await jobOf(await announce(value))];
    expect(first.id).not.toBe(second.id);
  });
});
