import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { admin } from '../../../test/support/admin.ts';
import { type FakeServer, ok, type Reply, startFakeServer } from '../../../test/support/fake-server.ts';
import { read } from '../../../test/support/platform.ts';
import { freshId, save } from '../../../test/support/records.ts';
import { until } from '../../../test/support/wait.ts';
import { settingsOfStack, useApplication } from './application.ts';

const { php, run, startDriver } = useApplication();
beforeEach(() => php("DB::table('jobs')->delete(); DB::table('failed_jobs')->delete(); Cache::flush();"));
afterEach(() => server?.close());

const clearPath = '/api/admin/cache/clear-model';
const cleared: Reply = { status: 200, body: { success: true, keys_deleted: 1 } };

let server: FakeServer | undefined;
const connect = (url: string, client: string, secret: string) =>
  php(
    `config(['platform.url' => '${url}', 'platform.client' => '${client}', 'platform.secret' => '${secret}']);`,
  );

/** Starts a platform that returns these replies to clears; the last one repeats. Connects the application to it. */
async function platform(...replies: Reply[]): Promise<void> {
  let tokens = 0;
  const token = () => ok({ access_token: `t${(tokens += 1)}`, expires_in: 900, scope: '' });
  server = await startFakeServer({ '/api/token': [token], [clearPath]: replies });
  // The slash at the end must not matter.
  await connect(`${server.origin}/`, 'c', 's:/ü');
}

/** Queues an announcement and does the job once. */
const announce = (id = 12) => php(`dispatch(new AnnounceChange('webform', [${id} => 'updated'])); work();`);
/** Returns the waiting announcements. The delay is in seconds. */
const waiting = () =>
  php<Record<'attempts' | 'delay', number>[]>(`return DB::table('jobs')->get()
    ->map(fn ($job) => ['attempts' => (int) $job->attempts, 'delay' => $job->available_at - $job->created_at])->all();`);
const failed = () => php<string[]>("return DB::table('failed_jobs')->pluck('exception')->all();");
const log = () => php<string>("return file_get_contents(storage_path('logs/laravel.log'));");

test('asks for a token once, and encodes the secret', async () => {
  await platform(cleared);
  await announce();
  await announce(13);
  const { seen } = server!;
  expect(seen.map(({ path }) => path)).toEqual(['/api/token', clearPath, clearPath]);
  expect(Buffer.from(seen[0]!.headers.authorization!.slice(6), 'base64').toString()).toBe('c:s%3A%2F%C3%BC');
  expect(seen[1]!.headers.authorization).toBe('Bearer t1');
  expect(JSON.parse(seen[2]!.body)).toEqual({ model: 'webform', ids: [13] });
  expect(await waiting()).toEqual([]);
});

test('replaces a refused token at once', async () => {
  await platform({ status: 401 }, cleared);
  await announce();
  expect(server!.seen.slice(1).map(({ headers }) => headers.authorization)).toEqual([
    'Bearer t1',
    expect.anything(),
    'Bearer t2',
  ]);
  expect(await waiting()).toEqual([]);
});

const html = { body: '<html>', headers: { 'Content-Type': 'text/html' } };
test.each<[string, Reply, number]>([
  ['503', { status: 503, headers: { 'retry-after': '7' } }, 7],
  ['429', { status: 429, headers: { 'retry-after': '30' } }, 30],
  ['503 with a long Retry-After', { status: 503, headers: { 'retry-after': '86400' } }, 600],
  ['503 without Retry-After', { status: 503 }, 1],
  ['a second 401', { status: 401 }, 1],
  ['400', { status: 400, body: { message: 'The target must be a path.' } }, 1],
  ['a page with status 200', { status: 200, ...html }, 1],
  ['success false', { status: 200, body: { success: false } }, 1],
  ['a redirect', { status: 302, headers: { location: '/' } }, 1],
  ['304', { status: 304 }, 1],
])('tries again after %s', async (_, reply, delay) => {
  await platform(reply);
  await announce();
  expect(await waiting()).toEqual([{ attempts: 1, delay }]);
  expect(await log()).toMatch(
    `Announcing webform 12 failed, next try in ${delay} s. The platform returned ${reply.status}`,
  );
});

test('tries again if no server responds', async () => {
  await platform(cleared);
  server!.close();
  await announce();
  expect(await waiting()).toHaveLength(1);
  expect(await log()).toMatch(/next try in 1 s\. No reply to \/api\/token: cURL error 7/);
});

test('waits longer after each try, stays below 255 tries in a day, and ends with success', async () => {
  await platform({ status: 503 });
  await announce();
  const delays = [];
  for (let tries = 1; tries <= 10; tries += 1) {
    delays.push((await waiting())[0]!.delay);
    await php("DB::table('jobs')->update(['available_at' => 0]); work();");
  }
  const wanted = [1, 2, 5, 10, 30, 60, 120, 300, 600, 600];
  expect(delays).toEqual(wanted);
  const perDay = 11 + Math.floor((24 * 3600 - wanted.reduce((sum, pause) => sum + pause)) / 600);
  expect(await php("return (new AnnounceChange('webform', []))->tries;")).toBe(perDay);
  server!.close();
  await platform(cleared);
  await php("DB::table('jobs')->update(['available_at' => 0]); work();");
  expect([await waiting(), await failed()]).toEqual([[], []]);
});

test('a job that failed for a day is in failed_jobs, but not a job that had no worker for two days', async () => {
  await platform({ status: 503 });
  await announce();
  await php(`Illuminate\\Support\\Carbon::setTestNow(now()->addDays(2));
    try { DB::table('jobs')->update(['available_at' => 0]); work(); } finally { Illuminate\\Support\\Carbon::setTestNow(); }`);
  expect(await waiting()).toMatchObject([{ attempts: 2 }]);
  await php("DB::table('jobs')->update(['available_at' => 0, 'attempts' => 152]); work();");
  expect([await waiting(), (await failed()).length]).toEqual([[], 1]);
});

test('keeps a refused announcement in failed_jobs, and sends it after queue:retry', async () => {
  const name = `reader-${freshId()}`;
  const secret = await admin('create-client', name, '--scope', 'content:read');
  const { PLATFORM_URL: url } = settingsOfStack();
  const id = freshId();
  await save('webform', id, 'Old');
  await until('it is cached', async () => (await read('webform', id)).cache === 'hit');
  await save('webform', id, 'New');
  await connect(url, name, secret);
  await announce(id);
  expect(await failed()).toEqual([expect.stringContaining('PlatformError: The platform returned 403')]);
  expect(await log()).toMatch(`The announcement of webform ${id} was refused and is in failed_jobs.`);
  await connect(url, 'content-server', 'demo-secret');
  await php("Illuminate\\Support\\Facades\\Artisan::call('queue:retry', ['id' => ['all']]); work();");
  expect([await waiting(), await failed()]).toEqual([[], []]);
  expect((await read('webform', id)).title).toBe('New');
});

test('does not repeat an invalid announcement', async () => {
  const { PLATFORM_URL: url } = settingsOfStack();
  await connect(url, 'content-server', 'demo-secret');
  await announce(0);
  expect(await waiting()).toEqual([]);
  expect(await failed()).toEqual([expect.stringContaining('PlatformError: The platform returned 422')]);
});

test('with the queue driver sync, a failed announcement throws in the request that saved the record', async () => {
  await platform({ status: 503 });
  const id = freshId();
  const saved = php(`config(['platform.queue_connection' => 'sync']);
    try {
      DB::connection('platform')->transaction(function () {
        Webform::create(['id' => ${id}, 'title' => 'Kept', 'body' => 1]);
        Pathway::create(['id' => ${id}, 'title' => 'Kept', 'body' => 1]);
      });
    } finally { config(['platform.queue_connection' => null]); }`);
  await expect(saved).rejects.toThrow('ContentPlatform\\Laravel\\PlatformError: The platform returned 503');
  expect(server!.seen.filter(({ path }) => path === clearPath)).toHaveLength(2);
  expect(await php(`return Pathway::find(${id})->title;`)).toBe('Kept');
});

test('platform:clear prints the number of deleted keys, and fails with the reason', async () => {
  const id = freshId();
  await save('webform', id, 'Old');
  const command = ['artisan', 'platform:clear', 'webform', String(id)];
  const cleared = await until('the record is cached when the command runs', async () => {
    await until('it is cached', async () => (await read('webform', id)).cache === 'hit');
    const { code, output } = await run('php', command);
    // Another test file may clear all webforms in between.
    return output.includes(': 0 keys') ? undefined : { code, output };
  });
  expect(cleared).toEqual({ code: 0, output: `Cleared webform ${id}: 1 keys deleted.\n` });
  const refused = await run('php', command, { PLATFORM_SECRET: 'wrong' });
  expect(refused.code).toBe(1);
  expect(refused.output).toMatch('The platform returned 401');
  const wrong = await run('php', ['artisan', 'platform:clear', 'webform', '']);
  expect(wrong.output).toMatch('The id must be a positive integer');
});

test("an application's tests run on SQLite, without the platform", async () => {
  const other = startDriver();
  try {
    const state =
      await other.php(`Platform::fake(); Bus::fake([RenameJob::class]); config(['platform.url' => 'http://127.0.0.1:1']);
      Webform::create(['id' => 12, 'title' => 'A', 'body' => (object) []])->update(['title' => 'B']);
      Webform::where('id', 12)->update(['title' => 'C']);
      foreach ([['title' => 'No id', 'body' => 1], ['id' => 13, 'title' => 'No JSON', 'body' => 'x']] as $bad)
        try { Webform::insert($bad); throw new LogicException('accepted'); } catch (Illuminate\\Database\\QueryException) {}
      $keys = app(Platform::class)->clear('webform', 12);
      return [Webform::find(12)->title, json_encode(Webform::find(12)->body), Platform::announced(), $keys];`);
    expect(state).toEqual(['C', '{}', ['webform 12', 'webform 12', 'webform 12'], 0]);
    expect(await waiting()).toEqual([]);
  } finally {
    other.stop();
  }
});
