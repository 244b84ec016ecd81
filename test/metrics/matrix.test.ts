import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import * as contract from '@content-platform/contract';
import { call, type CallOptions } from '@content-platform/contract/client';
import {
  emails,
  logIn,
  machine,
  newAddress,
  newUser,
  password,
  tokenOf,
  type OwnUser,
} from '../support/accounts.ts';
import { newPushToken } from '../support/devices.ts';
import { announce, closeEvents } from '../support/events.ts';
import { newLetter } from '../support/letters.ts';
import { fileOf, newPicture } from '../support/media.ts';
import { changes, scrape, scrapeAll, type Series } from '../support/metrics.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { closeRecords, database, freshId, save } from '../support/records.ts';
import { isWell, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

/** Exact counts need a stack on which nobody else does anything. */
let own: OwnStack;
let user: OwnUser;
beforeAll(async () => {
  own = await startOwnStack();
  await until('all is well', isWell, 120_000);
  user = await newUser();
  // From here on nobody asks for a token.
  await Promise.all(
    (['admin', 'sre', 'machine'] as const).map((account) => tokenOf(stack().gateway, account)),
  );
}, 300_000);
afterAll(async () => {
  await closeEvents();
  await closeRecords();
  await own?.stop();
});

/** What each process's series gained while `work` ran. */
async function gained(work: () => Promise<void>): Promise<Map<string, Series>> {
  const before = await scrapeAll();
  await work();
  const after = await scrapeAll();
  return new Map([...after].map(([name, series]) => [name, changes(before.get(name)!, series)]));
}

/** How many requests each process was to count: `service METHOD route status`. */
const expected = new Map<string, number>();
function expectOne(service: string, { method, path }: contract.Endpoint, status: number): void {
  const key = `${service} ${method} ${path} ${status}`;
  expected.set(key, (expected.get(key) ?? 0) + 1);
}

/** Asks through the gateway, and notes who counts it: a refusal by the gateway reaches no service. */
async function ask<const E extends contract.Endpoint>(
  endpoint: E,
  status: number,
  options: CallOptions<E> = {},
) {
  const headers = { 'X-Forwarded-For': newAddress(), ...options.headers };
  const answer = await call(stack().gateway, endpoint, { ...options, headers });
  expect({ endpoint: endpoint.name, status: answer.status }).toEqual({ endpoint: endpoint.name, status });
  expectOne('gateway', endpoint, status);
  const isRefused = status === 401 && endpoint.access !== 'public';
  if (endpoint.service !== 'gateway' && !isRefused) expectOne(endpoint.service, endpoint, status);
  return answer;
}

function countsOf(gain: Map<string, Series>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [service, series] of gain) {
    for (const [name, value] of series) {
      const labels =
        /^http_request_duration_seconds_count\{method="(\w+)",route="(.+)",service="(.+)",status="(\d+)"\}$/.exec(
          name,
        );
      if (!labels) continue;
      const [, method, route, label, status] = labels;
      expect(label).toBe(service);
      counts.set(`${service} ${method} ${route} ${status}`, value);
    }
  }
  return counts;
}

/** Services ask auth for its keys whenever they need them. */
const byServices = 'auth GET /.well-known/jwks.json 200';
const sorted = (counts: Map<string, number>) => [...counts].filter(([key]) => key !== byServices).toSorted();

test('every endpoint, refused and answered: each request is counted once where it was, and nothing else is', async () => {
  const { gateway } = stack();
  const [admin, sre, cms] = await Promise.all(
    (['admin', 'sre', 'machine'] as const).map((account) => tokenOf(gateway, account)),
  );
  const { token } = user;
  const record = freshId();
  await save('webform', record, 'One');
  const letter = await newLetter({ userId: user.id });
  const nobody = 9_007_199_254_740_991;

  const gain = await gained(async () => {
    // Refused: without a token by the gateway, otherwise by the service for what was sent.
    for (const endpoint of contract.endpoints) {
      if (endpoint.access === 'public') continue;
      const params = Object.fromEntries(
        Object.keys(endpoint.params?.shape ?? {}).map((name) => [name, nobody]),
      );
      await ask(endpoint, 401, { params } as never);
    }
    await ask(contract.login, 422, { body: {} as never });
    await ask(contract.login, 401, { body: { email: emails.user, password: 'wrong' } });
    await ask(contract.token, 400, { body: {} as never });
    await ask(contract.token, 401, {
      body: { grant_type: 'client_credentials', client_id: machine.id, client_secret: 'wrong' },
    });
    await ask(contract.pulse, 401);
    await ask(contract.pulseAsset, 404, { params: { file: 'nothing.js' } });
    const origin = { Origin: 'http://elsewhere.example' };
    const form = { email: emails.sre, password };
    await ask(contract.pulseSignIn, 403, { body: form, headers: origin });
    await ask(contract.pulseSignOut, 403, { headers: origin });
    await ask(contract.pulseRetry, 403, { params: { id: nobody }, headers: origin });
    await ask(contract.docsAsset, 404, { params: { asset: 'nothing.js' } });
    await ask(contract.readContent, 404, { params: { model: 'webform', id: nobody }, token });
    await ask(contract.clearModel, 422, { body: { model: 'letter' as never, id: 1 }, token: cms });
    await ask(contract.clearPattern, 422, { body: { pattern: '*' as never }, token: cms });
    await ask(contract.readFailedJob, 404, { params: { id: nobody }, token: sre });
    await ask(contract.retryFailedJob, 404, { params: { id: nobody }, token: sre });
    await ask(contract.upload, 415, { body: fileOf(Buffer.from('text')), token });
    await ask(contract.readMedia, 404, { params: { id: nobody }, token });
    await ask(contract.readVariant, 404, { params: { id: nobody, variant: 'thumb' }, token });
    await ask(contract.deleteMedia, 404, { params: { id: nobody }, token });
    await ask(contract.registerFcmToken, 422, { body: { token: '' }, token });
    await ask(contract.deleteDevice, 404, { params: { id: nobody }, token });
    await ask(contract.updateLetterSkippedWebform, 404, {
      body: { letter_id: nobody, webform_id: 2, skipped: true },
      token,
    });
    await ask(contract.updateLetter, 428, { params: { id: letter }, body: { title: 'New' }, token: admin });
    await ask(contract.readUser, 404, { params: { id: nobody }, token: admin });

    // Answered.
    await ask(contract.login, 200, { body: { email: emails.user, password } });
    await ask(contract.token, 200, {
      body: { grant_type: 'client_credentials', client_id: machine.id, client_secret: machine.secret },
    });
    await ask(contract.jwks, 200);
    for (const endpoint of [
      contract.health,
      contract.openapiDocument,
      contract.asyncapiDocument,
      contract.docs,
    ])
      await ask(endpoint, 200);
    for (const endpoint of [contract.me, contract.listSessions]) await ask(endpoint, 200, { token });
    await ask(contract.readContent, 200, { params: { model: 'webform', id: record }, token });
    await ask(contract.readContent, 200, { params: { model: 'webform', id: record }, token });
    await ask(contract.clearModel, 200, { body: { model: 'webform', id: record }, token: cms });
    await ask(contract.clearPattern, 200, { body: { pattern: 'pathway:*' }, token: cms });

    const picture = await newPicture();
    const file = (await ask(contract.upload, 201, { body: fileOf(picture), token })).body!;
    await ask(contract.upload, 200, { body: fileOf(picture), token });
    await ask(contract.listMedia, 200, { token });
    await ask(contract.readMedia, 200, { params: { id: file.id }, token });
    await ask(contract.readVariant, 200, { params: { id: file.id, variant: 'thumb' }, token });
    await ask(contract.deleteMedia, 204, { params: { id: file.id }, token });

    const { device } = (
      await ask(contract.registerFcmToken, 200, {
        body: { token: newPushToken() },
        token,
      })
    ).body!;
    await ask(contract.listDevices, 200, { token });
    await ask(contract.listDeviceTokens, 200, { params: { id: user.id }, token: admin });
    await ask(contract.deviceFeedback, 200, { body: { results: [] }, token: admin });
    await ask(contract.deleteDevice, 204, { params: { id: device.id }, token });

    await ask(contract.updateLetterSkippedWebform, 200, {
      body: { letter_id: letter, webform_id: 2, skipped: true },
      token,
    });
    await ask(contract.listLetters, 200, { token });
    await ask(contract.readLetter, 200, { params: { id: letter }, token });
    await ask(contract.readLetterHistory, 200, { params: { id: letter }, token });
    await ask(contract.updateLetter, 200, {
      params: { id: letter },
      body: { title: 'New' },
      headers: { 'If-Match': '*' },
      token: admin,
    });

    const email = `matrix-${randomUUID()}@example.com`;
    const made = (
      await ask(contract.createUser, 201, {
        body: { email, name: 'Mia Matrix' },
        token: admin,
      })
    ).body!;
    const params = { id: made.id };
    for (const endpoint of [contract.listUsers, contract.listAudit])
      await ask(endpoint, 200, { token: admin });
    await ask(contract.readUser, 200, { params, token: admin });
    await ask(contract.updateUser, 200, { params, body: { name: 'Mia M.' }, token: admin });
    await ask(contract.createTemporaryPassword, 200, { params, token: admin });
    await ask(contract.deleteUser, 204, { params, token: admin });

    await announce('not JSON');
    const jobs = await until('the event is a failed job', async () => {
      const { rows } = await database().query<{ id: string }>(
        `SELECT id FROM content.failed_job WHERE state = 'open'`,
      );
      return rows.length > 0 && rows;
    });
    const job = { params: { id: Number(jobs[0]!.id) }, token: sre };
    await ask(contract.listFailedJobs, 200, { token: sre });
    await ask(contract.listFailedJobClasses, 200, { token: sre });
    await ask(contract.readFailedJob, 200, job);
    await ask(contract.retryFailedJob, 409, job);
    await ask(contract.retryFailedJobs, 200, { body: { dry_run: true }, token: sre });
    await ask(contract.deleteFailedJob, 204, job);

    const identity = { identity: 'identity' };
    await ask(contract.identityLogin, 501, { params: identity });
    await ask(contract.identityCallback, 501, { params: identity });
    await ask(contract.identityLogout, 501, { params: identity, token });
    await ask(contract.updateSuborg, 501, { params: identity, body: { suborg: 'one' }, token });

    await ask(contract.deleteSession, 404, { params: { id: nobody }, token });
    const changed = `another passphrase ${randomUUID()}`;
    const body = { current_password: user.password, new_password: changed };
    await ask(contract.changePassword, 204, { body, token });
    // That was the end of all sessions.
    const session = await logIn(user.email, changed);
    expectOne('gateway', contract.login, 200);
    expectOne('auth', contract.login, 200);
    await ask(contract.logout, 204, { token: session.token });
    const last = await logIn(user.email, changed);
    expectOne('gateway', contract.login, 200);
    expectOne('auth', contract.login, 200);
    await ask(contract.deleteSessions, 204, { token: last.token });
  });
  const asked = new Set([...expected.keys()].map((key) => key.split(' ').slice(1, 3).join(' ')));
  for (const { method, path } of contract.endpoints) expect(asked).toContain(`${method} ${path}`);

  expect(sorted(countsOf(gain))).toEqual(sorted(expected));

  const value = (service: string, series: string) => gain.get(service)!.get(series) ?? 0;
  expect({
    'cache, miss': value('content-cache', 'cache_reads_total{model="webform",outcome="miss"}'),
    'cache, hit': value('content-cache', 'cache_reads_total{model="webform",outcome="hit"}'),
    'cache, bypass': value('content-cache', 'cache_reads_total{model="webform",outcome="bypass"}'),
    'keys deleted': value('content-cache', 'cache_keys_deleted_total{source="http"}'),
    clears: value('content-cache', 'invalidation_delay_seconds_count{source="http"}'),
    'failed jobs': value('content-cache', 'failed_jobs_total{class="not_json"}'),
    'open jobs': value('content-cache', 'failed_jobs_open'),
    'logins, success': value('auth', 'logins_total{outcome="success"}'),
    'logins, failure': value('auth', 'logins_total{outcome="failure"}'),
    'uploads, created': value('media-upload', 'uploads_total{outcome="created"}'),
    'uploads, existing': value('media-upload', 'uploads_total{outcome="existing"}'),
    'uploads, refused': value('media-upload', 'uploads_total{outcome="refused"}'),
    'uploads, busy': value('media-upload', 'uploads_total{outcome="busy"}'),
    processed: value('media-upload', 'upload_processing_seconds_count'),
  }).toEqual({
    // Nobody's record is one, too.
    'cache, miss': 2,
    'cache, hit': 1,
    'cache, bypass': 0,
    'keys deleted': 1,
    clears: 2,
    'failed jobs': 1,
    'open jobs': 0,
    'logins, success': 3,
    'logins, failure': 1,
    'uploads, created': 1,
    'uploads, existing': 1,
    'uploads, refused': 1,
    'uploads, busy': 0,
    processed: 2,
  });
  const reads = 'db_query_duration_seconds_count{operation="read_record",service="content-cache"}';
  expect(value('content-cache', reads)).toBe(2);
});

test('too many requests are counted by their route', async () => {
  const token = await tokenOf(stack().gateway, 'sre');
  const gain = await gained(async () => {
    const headers = { 'X-Forwarded-For': newAddress() };
    const limit = contract.me.rateLimit.requests;
    for (let asked = 0; asked < limit + 5; asked += 5) {
      await Promise.all(
        Array.from({ length: 5 }, () => call(stack().gateway, contract.me, { token, headers })),
      );
    }
  });
  const limited = gain
    .get('gateway')!
    .get('http_request_duration_seconds_count{method="GET",route="/api/me",service="gateway",status="429"}')!;
  expect(limited).toBeGreaterThan(0);
  expect(gain.get('gateway')!.get('rate_limited_total{route="/api/me"}')).toBe(limited);
});

test('what a service cannot answer is counted by its reason', async () => {
  const token = await tokenOf(stack().gateway, 'sre');
  const before = await scrape('gateway');
  process.kill(own.pidOf('letters'), 'SIGKILL');
  const statuses: number[] = [];
  await until('it is back', async () => {
    const { status } = await call(stack().gateway, contract.listLetters, {
      token,
      headers: { 'X-Forwarded-For': newAddress() },
    });
    statuses.push(status);
    return status === 200 && statuses.length > 1;
  });
  const gain = [...changes(before, await scrape('gateway'))];
  const errors = gain.filter(([series]) =>
    /^gateway_upstream_errors_total\{.*service="letters"\}$/.test(series),
  );
  const sum = errors.reduce((total, [, value]) => total + value, 0);
  expect(sum).toBe(statuses.filter((status) => status >= 500).length);
  expect(sum).toBeGreaterThan(0);
});
