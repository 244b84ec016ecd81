import { afterAll, beforeAll, expect, test } from '@jest/globals';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { tokenOf } from '../../../test/support/accounts.ts';
import { announce, closeEvents, type Sent } from '../../../test/support/events.ts';
import { newFailedJob } from '../../../test/support/failed-jobs.ts';
import { database, freshId, save } from '../../../test/support/records.ts';
import { read } from '../../../test/support/platform.ts';
import { stack } from '../../../test/support/stack.ts';
import { until } from '../../../test/support/wait.ts';
import { describeEndpoint } from '../../../test/contract/describe-endpoint.ts';

type Job = contract.FailedJob;
const { gateway } = stack();

async function jobOf({ partition, offset }: Sent): Promise<Job> {
  const token = await tokenOf(gateway, 'sre');
  return until('the failed job is listed', async () => {
    const { body } = await call(gateway, contract.listFailedJobs, { token, query: { limit: 100 } });
    return body?.items.find((job) => job.partition === partition && job.offset === offset);
  });
}

/** Creates a job that succeeds on retry, as if an older version had not known the model. */
const retryableJob = (id: number, model: contract.Model = 'webform') =>
  newFailedJob('unknown_model', 'unknown model', id, model);

let example: Job;
beforeAll(async () => {
  example = await jobOf(await announce('not json'));
});
afterAll(closeEvents);

const badFilters = ['state=closed', 'model=x', 'since=yesterday'];
const badQueries = [
  ...badFilters,
  'class=other',
  'since=0000-01-01T00:00:00Z',
  `since=2020-01-01T00:00:00.${'1'.repeat(60)}Z`,
];

/** Creates a record with its old version in the cache and its new version in the database. */
async function changedRecord(): Promise<number> {
  const id = freshId();
  await save('webform', id, 'Old');
  await read('webform', id);
  await save('webform', id, 'New');
  return id;
}

describeEndpoint(contract.listFailedJobs, { as: 'sre', invalid: { queries: badQueries } }, ({ ask }) => {
  test.each<[string, string | null, Job['class']]>([
    ['not JSON', '{"model":', 'not_json'],
    ['null', null, 'empty'],
    ['an unknown model', '{"model":"letter","id":1}', 'unknown_model'],
    // Not invalid_event: test/browser/pulse.test.ts needs the newest job of that class.
  ])('stores an event that is %s as a failed job and continues', async (_, value, failedClass) => {
    const id = await changedRecord();
    const key = `webform:${id}`;
    const job = await jobOf(await announce(value, key));
    const topic = 'cache-invalidation';
    expect(job).toMatchObject({ class: failedClass, value, topic, state: 'open', attempts: 1 });
    // Consumers ignore unknown fields.
    await announce(JSON.stringify({ model: 'webform', id, tenant: 'x' }), key);
    const clears = `SELECT FROM content.invalidation WHERE source = 'kafka' AND target = '${key}'`;
    await until('the next event is carried out', async () => (await database().query(clears)).rowCount! > 0);
    expect((await read('webform', id)).title).toBe('New');
  });

  test('lists jobs in pages, newest first, and filters by class, model and time', async () => {
    await jobOf(await announce('still not json'));
    const first = await ask({ query: { limit: 1, class: 'not_json' } });
    const second = await ask({ query: { limit: 1, class: 'not_json', cursor: first.body!.next_cursor! } });
    expect(second.body!.items[0]!.id).toBeLessThan(first.body!.items[0]!.id);
    const later = await ask({ query: { since: '2999-01-01T00:00:00Z', model: 'webform', state: 'open' } });
    expect(later.body).toEqual({ items: [], next_cursor: null });
  });
});

const classes = { as: 'sre', invalid: { queries: [...badFilters, 'class=empty', 'limit=1'] } } as const;

describeEndpoint(contract.listFailedJobClasses, classes, ({ ask }) => {
  const group = async (name: Job['class']) => (await ask()).body!.items.find((each) => each.class === name);

  test('counts failed events by class and shows an example', async () => {
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
  });
});

describeEndpoint(contract.readFailedJob, {}, ({ ask }) => {
  test('returns one job', async () => {
    expect((await ask({ params: { id: example.id } })).body).toEqual(example);
  });
});

describeEndpoint(contract.retryFailedJob, { as: 'sre' }, ({ ask }) => {
  test('closes a job whose retry succeeds, and clears the record', async () => {
    const record = await changedRecord();
    const id = await retryableJob(record);
    expect(await ask({ params: { id } })).toMatchObject({
      status: 200,
      body: { id, state: 'retried', attempts: 2 },
    });
    expect(await read('webform', record)).toMatchObject({ title: 'New' });
  });
  test('keeps a job open whose retry fails, with the error', async () => {
    const { id } = await jobOf(await announce('never json'));
    const answer = await ask({ params: { id } });
    expect(answer.error).toMatchObject({ error: 'retry_failed', code: 409 });
    const token = await tokenOf(gateway, 'sre');
    const { body } = await call(gateway, contract.readFailedJob, { params: { id }, token });
    expect(body).toMatchObject({ state: 'open', attempts: 2 });
  });
});

const retryFailedJobsExample = {
  as: 'sre',
  body: { dry_run: true },
  invalid: { fields: { per_second: [0, 1.5], class: ['x'], dry_run: ['yes'], extra: [1] } },
} as const;
describeEndpoint(contract.retryFailedJobs, retryFailedJobsExample, ({ ask }) => {
  test('retries the matching jobs', async () => {
    const id = await retryableJob(freshId());
    const { body } = await ask({ body: { class: 'unknown_model', model: 'webform', per_second: 1000 } });
    expect(body).toMatchObject({ retried: body!.matched, failed: 0 });
    const { rows } = await database().query('SELECT state FROM content.failed_job WHERE id = $1', [id]);
    expect(rows).toEqual([{ state: 'retried' }]);
  });
});

const deleteFailedJobsExample = {
  as: 'sre',
  body: { class: 'unknown_model', model: 'condition', dry_run: true },
  invalid: {
    fields: { class: ['x'], state: ['closed'], since: ['yesterday'], dry_run: ['yes'], extra: [1] },
    bodies: [{}, { dry_run: false }],
  },
} as const;
describeEndpoint(contract.deleteFailedJobs, deleteFailedJobsExample, ({ ask }) => {
  test('deletes the matching jobs', async () => {
    // No other test uses jobs of this model.
    await retryableJob(freshId(), 'condition');
    const { body } = await ask({ body: { class: 'unknown_model', model: 'condition' } });
    expect(body).toEqual({ matched: 1, deleted: 1 });
  });
});

describeEndpoint(contract.deleteFailedJob, { as: 'sre' }, ({ ask }) => {
  test('deletes a job', async () => {
    const id = await retryableJob(freshId());
    expect(await ask({ params: { id } })).toMatchObject({ status: 204 });
    expect((await ask({ params: { id } })).error?.error).toBe('not_found');
  });
});
