import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from '@jest/globals';
import { ROOT } from '../../../deploy/local/config.ts';
import { read } from '../../../test/support/platform.ts';
import { database, freshId } from '../../../test/support/records.ts';
import { until } from '../../../test/support/wait.ts';
import { useApplication } from './application.ts';

const { php, startDriver } = useApplication();
beforeEach(() => php("DB::table('jobs')->delete();"));

interface Announced {
  model: string;
  changes: Record<string, string | null>;
}
const announced = () => php<Announced[]>('return announced();');
const webform = (...changes: [id: number, change: string | null][]): Announced[] => [
  { model: 'webform', changes: Object.fromEntries(changes) },
];

/** Creates webforms and returns their ids; their announcements are dropped. */
async function create(count = 1): Promise<number[]> {
  const first = freshId();
  const ids = Array.from({ length: count }, (_, index) => first + index);
  await php(`foreach ([${ids.join(',')}] as $id) Webform::create(['id' => $id, 'title' => 'Old', 'body' => (object) []]);
    DB::table('jobs')->delete();`);
  return ids;
}
/** Reads until the record is cached, or its absence is. */
const cached = (id: number) =>
  until('it is cached', async () => (await read('webform', id)).cache !== 'miss');
const work = () => php<number>('return work();');

test('a created, changed and deleted record is visible once the job is done', async () => {
  const id = freshId();
  expect((await read('webform', id)).status).toBe(404);
  await php(`Webform::create(['id' => ${id}, 'title' => 'Intake', 'body' => ['fields' => []]]);`);
  expect(await announced()).toEqual(webform([id, 'created']));
  expect(await work()).toBe(1);
  expect(await read('webform', id)).toMatchObject({ status: 200, title: 'Intake' });
  await cached(id);
  await php(`Webform::find(${id})->update(['title' => 'Intake 2']);`);
  expect(await announced()).toEqual(webform([id, 'updated']));
  await work();
  expect(await read('webform', id)).toMatchObject({ cache: 'miss', title: 'Intake 2' });
  await php(`Webform::find(${id})->delete();`);
  expect(await announced()).toEqual(webform([id, 'deleted']));
  await work();
  expect((await read('webform', id)).status).toBe(404);
});

test('records of two models with the same id do not touch each other', async () => {
  const id = freshId();
  const state = await php<unknown>(`
    foreach ([Webform::class, Pathway::class] as $class) $class::create(['id' => ${id}, 'title' => $class, 'body' => 1]);
    $webform = Webform::find(${id})->refresh();
    $webform->title = 'New';
    $webform->save();
    $same = $webform->is(Pathway::find(${id}));
    Accesscode::destroy(${id});
    Webform::destroy(${id});
    return [$same, Webform::find(${id}), Pathway::find(${id})->title];`);
  expect(state).toEqual([false, null, 'ContentPlatform\\Laravel\\Pathway']);
});

test("announces a worker's first transaction in Octane, where each request has an application of its own", async () => {
  const [id] = (await create()) as [number];
  await php(`$base = app();
    $base->forgetInstance('ContentPlatform\\Laravel\\Announcer');
    $sandbox = clone $base;
    Illuminate\\Container\\Container::setInstance($sandbox);
    DB::connection('platform')->transaction(fn () => Webform::find(${id})->update(['title' => 'New']));
    Illuminate\\Container\\Container::setInstance($base);`);
  expect(await announced()).toEqual(webform([id, 'updated']));
});

test('a changed key announces the old and the new id', async () => {
  const [id] = (await create()) as [number];
  const other = freshId();
  await cached(id);
  await php(`$webform = Webform::find(${id}); $webform->id = ${other}; $webform->save();`);
  expect(await announced()).toEqual(webform([id, 'updated'], [other, 'updated']));
  await work();
  expect((await read('webform', id)).status).toBe(404);
  expect((await read('webform', other)).title).toBe('Old');
});

test('an unchanged record is not announced, also after its body was read, or assigned in another order', async () => {
  const id = freshId();
  // jsonb stores the keys as id, price, title.
  const importWith = (part: string) =>
    php<number>(`Webform::updateOrCreate(['id' => ${id}], ['title' => 'Old',
      'body' => ['title' => 'A', 'price' => 1.0, 'id' => ['name' => 'B', 'max' => ${part}]]]);
    return Webform::find(${id})->version;`);
  await importWith('(object) []');
  await php(`DB::table('jobs')->delete();
    $webform = Webform::find(${id}); $webform->body; $webform->save(); $webform->touch();`);
  expect(await importWith('(object) []')).toBe(1);
  expect(await announced()).toEqual([]);
  expect(await importWith('[]')).toBe(2);
});

test('a body keeps {} and 1.0 when something else changes', async () => {
  const [id] = (await create()) as [number];
  const text = '{"empty": {}, "list": [], "price": 1.0, "big": 12345678901234567890}';
  await database().query('UPDATE content.webform SET body = $2 WHERE id = $1', [id, text]);
  await php(`$webform = Webform::find(${id}); $webform->body; $webform->update(['title' => 'New']);`);
  const body = async () =>
    (await database().query<{ body: string }>('SELECT body::text FROM content.webform WHERE id = $1', [id]))
      .rows[0]!.body;
  expect(JSON.parse(await body())).toEqual(JSON.parse(text));
  expect(await body()).toMatch(/12345678901234567890/);
  await php(
    `try { tap(Webform::select('id')->find(${id}))->offsetSet('body->x', 1)->save(); } catch (LogicException) {}
    $webform = Webform::find(${id}); unset($webform->body->big); $webform->body->name = 'A';
    $webform['body->title'] = 'B'; $webform->save();`,
  );
  expect(await body()).toBe('{"list": [], "name": "A", "empty": {}, "price": 1.0, "title": "B"}');
});

test('changes of a transaction are announced in one job, after the commit', async () => {
  const [a, b, c] = (await create(3)) as [number, number, number];
  await php(`DB::connection('platform')->beginTransaction();
    Webform::find(${a})->update(['title' => 'New']);
    Webform::destroy(${b});`);
  expect(await announced()).toEqual([]);
  await php(
    `DB::connection('platform')->transaction(fn () => Webform::find(${c})->update(['title' => 'New']));`,
  );
  expect(await announced()).toEqual([]);
  await php("DB::connection('platform')->commit();");
  expect(await announced()).toEqual(webform([a, 'updated'], [b, 'deleted'], [c, 'updated']));
});

test('changes that are rolled back are not announced, also those of a savepoint', async () => {
  const [a, b] = (await create(2)) as [number, number];
  await php(`DB::connection('platform')->beginTransaction();
    Webform::find(${a})->update(['title' => 'New']);
    DB::connection('platform')->rollBack();`);
  expect(await announced()).toEqual([]);
  await php(`DB::connection('platform')->transaction(function () {
      Webform::find(${a})->update(['title' => 'New']);
      try {
        DB::connection('platform')->transaction(function () {
          Webform::find(${b})->update(['title' => 'New']);
          throw new LogicException;
        });
      } catch (LogicException) {}
    });`);
  expect(await announced()).toEqual(webform([a, 'updated']));
  expect(await php(`return Webform::find(${b})->title;`)).toBe('Old');
});

test.each([
  ['around the change', `DB::transaction(function () { CHANGE; throw new LogicException; })`],
  [
    'around a transaction of the platform',
    `DB::transaction(function () { DB::connection('platform')->transaction(fn () => CHANGE); throw new LogicException; })`,
  ],
])("the rollback of the application's own transaction %s keeps the announcement", async (_, code) => {
  const [id] = (await create()) as [number];
  const change = `Webform::find(${id})->update(['title' => 'New'])`;
  await expect(php(`${code.replace('CHANGE', change)};`)).rejects.toThrow('LogicException');
  expect(await announced()).toEqual(webform([id, 'updated']));
});

test('a committed change is announced after the request or job, even if a callback of the commit fails', async () => {
  const [id] = (await create()) as [number];
  const change = `DB::connection('platform')->transaction(function () {
      Webform::whereKey(${id})->update(['title' => 'New']);
      DB::connection('platform')->afterCommit(fn () => throw new LogicException);
    });`;
  await expect(php(change)).rejects.toThrow('LogicException');
  await php('app()->terminate();');
  expect(await announced()).toEqual(webform([id, 'updated']));
  await expect(php(change)).rejects.toThrow('LogicException');
  await php("event(new Illuminate\\Queue\\Events\\JobExceptionOccurred('redis', null, new LogicException));");
  expect(await announced()).toHaveLength(2);
  await expect(php(change)).rejects.toThrow('LogicException');
  // The next transaction's rollback does not undo the change.
  await php("DB::connection('platform')->beginTransaction(); DB::connection('platform')->rollBack();");
  expect(await announced()).toHaveLength(3);
});

test('with after_commit, the rollback of a third connection keeps the announcement', async () => {
  const [id] = (await create()) as [number];
  const other = startDriver();
  const third = `'database.connections.third' => ['driver' => 'sqlite', 'database' => ':memory:']`;
  const code = `config(['queue.connections.database.after_commit' => true, ${third}]); $third = DB::connection('third');
    $third->beginTransaction(); Webform::find(${id})->update(['title' => 'New']); $third->rollBack();`;
  await other.php(code).finally(other.stop);
  expect(await announced()).toEqual(webform([id, 'updated']));
});

test("queues the announcement when the application's own transaction ends, on commit as well", async () => {
  const [id] = (await create()) as [number];
  await php(`DB::beginTransaction(); Webform::find(${id})->update(['title' => 'New']);`);
  expect(await announced()).toEqual([]);
  await php('DB::commit();');
  expect(await announced()).toEqual(webform([id, 'updated']));
});

test("the commit of the application's own transaction does not announce what the platform has not committed", async () => {
  const [id] = (await create()) as [number];
  await php(`DB::connection('platform')->beginTransaction();
    DB::transaction(fn () => Webform::find(${id})->update(['title' => 'New']));`);
  expect(await announced()).toEqual([]);
  await php("DB::connection('platform')->commit();");
  expect(await announced()).toEqual(webform([id, 'updated']));
});

test.each([
  [
    'a bulk update',
    `Webform::whereIn('id', [A, B])->where('title', 'Old')->update(['title' => 'New']);`,
    'updated',
  ],
  [
    'a limited update',
    `Webform::whereIn('id', [A, B, C])->orderBy('id')->limit(2)->update(['title' => 'New']);`,
    'updated',
  ],
  ['a bulk delete', `Webform::whereIn('id', [A, B])->delete();`, 'deleted'],
  ['destroy', `Webform::destroy([A, B]);`, 'deleted'],
  ['a delete by key', `foreach ([A, B] as $id) Webform::query()->toBase()->delete($id);`, 'deleted'],
  [
    'an upsert',
    `Webform::upsert([['id' => A, 'title' => 'New', 'body' => '{}'], ['id' => B, 'title' => 'New', 'body' => '{}']], ['id'], ['title']);`,
    null,
  ],
  [
    'insertOrIgnore',
    `Webform::destroy([A, B]); foreach (['A + 0', 'B + 0', 'C'] as $id) Webform::insertOrIgnore(['id' => DB::raw($id), 'title' => 'N', 'body' => '1']);`,
    'created',
  ],
  [
    'updateOrInsert',
    `foreach ([A, B] as $id) Webform::query()->updateOrInsert(['id' => $id], ['title' => 'New', 'body' => '1']);`,
    'updated',
  ],
  [
    'updateOrCreate',
    `foreach ([A, B] as $id) Webform::updateOrCreate(['id' => $id], ['title' => 'New']);`,
    'updated',
  ],
  ['increment', `Webform::whereIn('id', [A, B])->increment('version', 1, ['title' => 'New']);`, 'updated'],
  [
    'saveQuietly',
    `foreach ([A, B] as $id) Webform::find($id)->fill(['title' => 'New'])->saveQuietly();`,
    'updated',
  ],
  [
    'withoutEvents',
    `Webform::withoutEvents(fn () => Webform::find([A, B])->each->update(['title' => 'New']));`,
    'updated',
  ],
  [
    'a chunked update',
    `Webform::whereIn('id', [A, B])->lazyById(1)->each->update(['title' => 'New']);`,
    'updated',
  ],
  ["the application's own model", `Form::whereKey([A, B])->update(['title' => 'New']);`, 'updated'],
  [
    'SQL and announce()',
    `DB::connection('platform')->update('UPDATE content.webform SET title = id WHERE id IN (A, B)');
     Webform::announce(A, B);`,
    null,
  ],
])('%s announces the changed records', async (_, code, change) => {
  const ids = (await create(3)) as [number, number, number];
  const [a, b, c] = ids.map(String) as [string, string, string];
  const filled = code.replace(/\b[ABC]\b/g, (letter) => ({ A: a, B: b, C: c })[letter]!);
  await php(`DB::connection('platform')->transaction(function () { ${filled} });`);
  expect(await announced()).toEqual(webform([ids[0], change], [ids[1], change]));
});

test("the application's own model announces the given id, and has the name of its class by default", async () => {
  const id = freshId();
  await php(`Form::create(['id' => ${id}, 'title' => 'New', 'body' => '{}']);`);
  expect(await announced()).toEqual(webform([id, 'created']));
  const model =
    'class Own extends Illuminate\\Database\\Eloquent\\Model { use ContentPlatform\\Laravel\\AnnouncesChanges; }';
  expect(await php(`${model} return (new Own)->platformModel();`)).toBe('own');
});

test('announces nothing for a bulk change that matches nothing, and for an empty list of ids', async () => {
  await php(
    `Webform::where('id', ${freshId()})->update(['title' => 'New']); Webform::where('id', ${freshId()})->delete();
    Webform::announce(...[]); Webform::whereIn('id', [])->update(['title' => 'New']); Webform::insert([]);`,
  );
  expect(await announced()).toEqual([]);
});

test('groups up to 1,000 ids in one job', async () => {
  const first = freshId();
  const last = first + 2_000;
  const insert =
    "INSERT INTO content.webform (id, title, body) SELECT id, 'Old', '{}' FROM generate_series($1::bigint, $2) AS id";
  await database().query(insert, [first, last]);
  await Promise.all([cached(first), cached(last)]);
  expect(
    await php(`return Webform::whereBetween('id', [${first}, ${last}])->update(['title' => 'New']);`),
  ).toBe(2_001);
  const sizes = (await announced()).map(({ changes }) => Object.keys(changes).length);
  expect(sizes).toEqual([1_000, 1_000, 1]);
  await work();
  expect((await read('webform', first)).title).toBe('New');
  expect((await read('webform', last)).title).toBe('New');
});

test('a queue that refuses the job throws after the commit', async () => {
  const id = freshId();
  const saved = php(`DB::statement('ALTER TABLE jobs RENAME TO gone');
    try {
      Webform::create(['id' => ${id}, 'title' => 'Kept', 'body' => 1]);
    } finally { DB::statement('ALTER TABLE gone RENAME TO jobs'); }`);
  await expect(saved).rejects.toThrow('no such table: jobs');
  expect(await php(`return Webform::find(${id})->title;`)).toBe('Kept');
});

test('announceAll() clears all records of the model', async () => {
  const [id] = (await create()) as [number];
  await cached(id);
  await php(`DB::connection('platform')->transaction(function () {
      Webform::find(${id})->update(['title' => 'SQL']);
      Webform::announceAll();
    });`);
  expect(await announced()).toEqual([{ model: 'webform', changes: {} }]);
  await work();
  expect((await read('webform', id)).title).toBe('SQL');
});

test('the code of the guide works as printed', async () => {
  const guide = readFileSync(join(ROOT, 'docs', 'guides', 'laravel.md'), 'utf8');
  const [records, form] = [...guide.matchAll(/^ *```php\n([^]*?)^ *```$/gm)].map(([, code]) => code!);
  // The driver has these imports.
  await php(records!.replace('use ContentPlatform\\Laravel\\Webform;', ''));
  expect((await announced()).map(({ changes }) => changes)).toEqual([
    { 101: 'created' },
    { 101: 'updated' },
    { 101: 'deleted' },
  ]);
  const [id] = (await create()) as [number];
  await php(
    `namespace Guide; use Illuminate\\Database\\Eloquent\\Model; ${form} Form::find(${id})->delete();`,
  );
  expect(await announced()).toEqual(webform([id, 'deleted']));
});

test('records work in routes and in jobs of the application', async () => {
  const [id] = (await create()) as [number];
  const title = await php<string>(`
    Route::get('/webforms/{webform}', fn (Webform $webform) => $webform->title)
      ->middleware(Illuminate\\Routing\\Middleware\\SubstituteBindings::class);
    $response = app('router')->dispatch(Illuminate\\Http\\Request::create('/webforms/${id}'));
    dispatch((new RenameJob(Webform::find(${id}), 'Renamed'))->onQueue('default'));
    work('default');
    return $response->getContent();`);
  expect(title).toBe('Old');
  expect(await announced()).toEqual(webform([id, 'updated']));
});
