import { beforeEach, expect, test } from '@jest/globals';
import { newPdf } from '../../../test/support/media.ts';
import { until } from '../../../test/support/wait.ts';
import * as corpus from '../testing/corpus.ts';
import { useService } from '../testing/service.ts';

const current = useService();
let service: Awaited<ReturnType<typeof current.start>>;
/** Files are stored only after this promise is resolved. */
let gate: PromiseWithResolvers<void>;
beforeEach(async () => {
  gate = Promise.withResolvers();
  const { store } = current.fixture;
  service = await current.start({ store: { put: (...args) => gate.promise.then(() => store.put(...args)) } });
});

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).toSorted();

test("accepts eight uploads of one user at a time and answers 503 to more; another user's upload succeeds meanwhile", async () => {
  const files = times(50, newPdf);
  const sent = files.map((file) => service.upload(file));
  await until('the others were refused', async () => (await service.counted('busy')) === 42);
  const theirs = service.upload(files[0]!, 2);
  await until('it is under way', async () => (await service.underWay()).length === 9);
  gate.resolve();
  expect((await theirs).status).toBe(201);
  expect(statuses(await Promise.all(sent))).toEqual([...times(8, () => 201), ...times(42, () => 503)]);
  // All slots were released.
  const last = await Promise.all(times(8, () => service.upload(newPdf())));
  expect(statuses(last)).toEqual(times(8, () => 201));
});

test('accepts 64 uploads of all users at a time', async () => {
  const file = newPdf();
  const sent = times(65, (index) => service.upload(file, index + 1));
  await until('one was refused', async () => (await service.counted('busy')) === 1, 30_000);
  gate.resolve();
  expect(statuses(await Promise.all(sent))).toEqual([...times(64, () => 201), 503]);
});

test('processes concurrent uploads of the same bytes once', async () => {
  const image = await corpus.jpeg();
  const sent = times(8, () => service.upload(image));
  await until('all are under way', async () => (await service.underWay()).length === 8);
  gate.resolve();
  const answers = await Promise.all(sent);
  expect(statuses(answers)).toEqual([...times(7, () => 200), 201]);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(service.processed()).toBe(1);
});

/** An upload that takes about 0.3 s. */
const slow = (await corpus.image(2_000, 1_500).png().toBuffer()) as Buffer<ArrayBuffer>;

test('refuses all concurrent uploads of the same damaged bytes', async () => {
  const damaged = slow.subarray(0, -1_000);
  expect(statuses(await Promise.all(times(5, () => service.upload(damaged))))).toEqual(times(5, () => 422));
  expect(service.processed()).toBeLessThan(5);
});

test('another upload of the same bytes takes over when the client of the first disconnects', async () => {
  service = await current.start({
    files: { findUpload: (...args) => gate.promise.then(() => current.fixture.files.findUpload(...args)) },
  });
  const hangUp = new AbortController();
  const first = expect(service.upload(slow, 1, hangUp.signal)).rejects.toThrow();
  await until('the first is there', async () => (await service.underWay()).length === 1);
  const others = times(3, () => service.upload(slow));
  await until('the others are there', async () => (await service.underWay()).length === 4);
  hangUp.abort();
  await first;
  gate.resolve();
  expect(statuses(await Promise.all(others))).toEqual([200, 200, 201]);
});
