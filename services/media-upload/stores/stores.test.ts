import { until, within } from '../../../test/support/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '@content-platform/chassis';
import { startHttpServer } from '../../../test/support/http-server.ts';
import { startS3Server } from '../../../test/support/s3-server.ts';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { useStarted } from '../../../test/support/use-started.ts';
import { storeConfig } from '../config.ts';
import { keysIn } from '../testing/media-fixture.ts';
import { storeFromConfig } from './from-config.ts';
import { createLocalFolderStore } from './local-folder.ts';
import { createS3Store, type S3Settings } from './s3.ts';
import type { Store } from './store.ts';

const root = temporaryFolder();
const server = useStarted(startS3Server, 300_000);

const s3 = (more: Partial<S3Settings> = {}): Store =>
  createS3Store({ ...server, region: 'us-east-1', ...more });
const unavailable = { status: 503, error: 'service_unavailable' };

const stores: Record<string, () => Promise<Store>> = {
  'a folder': () => createLocalFolderStore(join(root, 'files')),
  async S3() {
    const store = s3();
    // The first reply of a new S3Proxy can take longer than a store waits.
    await until('S3Proxy replies in time', async () => {
      await store.put('first', await fileOf(Buffer.of(1)));
      return store.remove('first').then(() => true);
    });
    return store;
  },
};

async function fileOf(bytes: Buffer): Promise<string> {
  const path = join(root, randomUUID());
  await writeFile(path, bytes);
  return path;
}

describe.each(Object.keys(stores))('%s', (name) => {
  let store: Store;
  beforeAll(async () => {
    store = await stores[name]!();
  });
  afterAll(() => store?.close());

  const read = async (key: string, range?: { start: number; end: number }) => {
    const stream = await store.get(key, range);
    return stream && (await buffer(stream));
  };

  test('returns a stored file completely, also after it was replaced', async () => {
    const key = `${randomUUID()}-large`;
    for (const size of [0, 1, 3_000_000]) {
      const bytes = randomBytes(size);
      await store.put(key, await fileOf(bytes));
      expect(bytes.equals((await read(key))!)).toBe(true);
    }
    await store.remove(key);
  });

  test('returns a file completely to a client that pauses', async () => {
    const key = `${randomUUID()}-large`;
    const bytes = randomBytes(3_000_000);
    await store.put(key, await fileOf(bytes));
    const stream = (await store.get(key))!;
    if (name === 'S3') await sleep(6_000);
    expect(bytes.equals(await buffer(stream))).toBe(true);
    await store.remove(key);
  });

  test('returns a part of a file', async () => {
    const key = `${randomUUID()}-thumb`;
    const bytes = randomBytes(200_000);
    await store.put(key, await fileOf(bytes));
    for (const [start, end] of [
      [0, 0],
      [10, 70_000],
      [199_999, 199_999],
      [0, 199_999],
    ] as const)
      expect(bytes.subarray(start, end + 1).equals((await read(key, { start, end }))!)).toBe(true);
    await store.remove(key);
  });

  test('returns nothing for a missing or removed file', async () => {
    const key = `${randomUUID()}-original`;
    await store.check();
    expect(await store.get(key)).toBeUndefined();
    expect(await store.get(key, { start: 0, end: 5 })).toBeUndefined();
    await store.remove(key);
    await store.put(key, await fileOf(Buffer.from('x')));
    await store.remove(key);
    expect(await store.get(key)).toBeUndefined();
  });

  test('lists every file with its age', async () => {
    const begun = Date.now();
    const keys = Array.from({ length: 20 }, () => `${randomUUID()}-thumb`);
    await Promise.all(keys.map(async (key) => store.put(key, await fileOf(Buffer.of(1)))));
    // More than S3 returns in one page.
    const more = Array.from({ length: name === 'S3' ? 1_000 : 0 }, () => `${randomUUID()}-thumb`);
    await Promise.all(more.map((key) => writeFile(join(server.folder, key), 'x'))).then(() => sleep(3_000));
    const listed: string[] = [];
    for await (const { key, ageMs } of store.list()) {
      listed.push(key);
      // S3 reports times in seconds.
      expect(ageMs).toBeGreaterThan(1_000);
      expect(ageMs).toBeLessThan(Date.now() - begun + 2_000);
    }
    expect(listed.toSorted()).toEqual([...keys, ...more].toSorted());
    await Promise.all(more.map((key) => rm(join(server.folder, key))));
    await Promise.all(keys.map((key) => store.remove(key)));
    expect(await keysIn(store)).toEqual([]);
  });

  test('stores nothing when the source cannot be read', async () => {
    const key = `${randomUUID()}-large`;
    await expect(store.put(key, join(root, 'nothing'))).rejects.toThrow('ENOENT');
    expect(await store.get(key)).toBeUndefined();
  });
});

test('the check fails when the folder was deleted', async () => {
  const folder = join(root, randomUUID());
  const store = await createLocalFolderStore(folder);
  await rm(folder, { recursive: true });
  await expect(store.check()).rejects.toThrow('ENOENT');
});

test('renames a file into the folder instead of copying it, so that it is never there in part', async () => {
  const folder = join(root, randomUUID());
  const store = await createLocalFolderStore(folder);
  const path = await fileOf(randomBytes(1_000));
  const { ino } = await stat(path);
  await store.put('a-large', path);
  expect((await stat(join(folder, 'a-large'))).ino).toBe(ino);
  expect(await readdir(folder)).toEqual(['a-large']);
});

test('returns 503 for S3 with a wrong secret or a missing bucket', async () => {
  const wrong = s3({ secretAccessKey: 'wrong' });
  await expect(wrong.check()).rejects.toThrow();
  await expect(wrong.get('x')).rejects.toMatchObject(unavailable);
  const missing = s3({ bucket: 'missing' });
  await expect(missing.check()).rejects.toThrow();
  await expect(missing.put('x', await fileOf(Buffer.from('x')))).rejects.toMatchObject(unavailable);
  for (const store of [wrong, missing]) store.close();
});

test('returns 503 in time if S3 hangs or is unreachable', async () => {
  const store = s3();
  await store.put('there', await fileOf(Buffer.from('x')));
  await server.pause();
  try {
    const answers = Promise.all([
      expect(store.get('there')).rejects.toMatchObject(unavailable),
      expect(store.remove('nothing')).rejects.toMatchObject(unavailable),
      expect(store.check()).rejects.toMatchObject(unavailable),
    ]);
    await within('the answers', answers);
    const hangUp = AbortSignal.timeout(100);
    await expect(store.get('there', undefined, hangUp)).rejects.toMatchObject({ name: 'AbortError' });
  } finally {
    server.resume();
  }
  (await store.get('there'))!.destroy();
  await store.remove('there');
  const unreachable = s3({ endpoint: 'http://127.0.0.1:1' });
  await expect(unreachable.get('there')).rejects.toMatchObject(unavailable);
  await expect(unreachable.put('there', await fileOf(Buffer.from('x')))).rejects.toMatchObject(unavailable);
  for (const each of [store, unreachable]) each.close();
});

test('slow readers of many files do not keep others from reading', async () => {
  const store = s3();
  await store.put('large', await fileOf(randomBytes(8_000_000)));
  await store.put('small', await fileOf(Buffer.from('x')));
  const slow = await Promise.all(Array.from({ length: 50 }, () => store.get('large')));
  // Otherwise their connections would be closed as idle.
  const reading = setInterval(() => slow.forEach((stream) => stream!.read()), 200);
  try {
    expect((await buffer((await store.get('small'))!)).toString()).toBe('x');
  } finally {
    clearInterval(reading);
    for (const stream of slow) stream!.destroy();
  }
  for (const key of ['large', 'small']) await store.remove(key);
  store.close();
});

describe('the configuration', () => {
  const open = async (env: Record<string, string>) =>
    storeFromConfig(readConfig(storeConfig, { MEDIA_FOLDER: join(root, 'configured'), ...env }));

  test('opens the bucket when S3 is configured', async () => {
    const store = await open({
      S3_ENDPOINT: server.endpoint,
      S3_BUCKET: server.bucket,
      S3_ACCESS_KEY_ID: server.accessKeyId,
      S3_SECRET_ACCESS_KEY: server.secretAccessKey,
    });
    await store.put('configured', await fileOf(Buffer.from('x')));
    const other = s3();
    expect(await keysIn(other)).toEqual(['configured']);
    await other.remove('configured');
    for (const each of [store, other]) each.close();
  });

  test.each([
    [{ S3_BUCKET: 'uploads' }, 'S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are not set'],
    [{ S3_BUCKET: 'uploads', S3_ACCESS_KEY_ID: 'x' }, 'S3_SECRET_ACCESS_KEY is not set'],
    [{ S3_ACCESS_KEY_ID: 'x', S3_SECRET_ACCESS_KEY: 'y' }, 'S3_BUCKET is not set'],
    [{ S3_ENDPOINT: 'http://127.0.0.1:1' }, 'S3_BUCKET is not set'],
    [{ S3_BUCKET: 'No Bucket' }, 'S3_BUCKET must be the name of a bucket'],
    [{ S3_ENDPOINT: 'ftp://host' }, 'S3_ENDPOINT must be a URL'],
  ])('refuses %j', async (env, message) => {
    await expect(open(env)).rejects.toThrow(message);
  });
});

test('accepts what Amazon does not return: 404 for a missing file, 429, an empty token, no 100-continue, no HEAD', async () => {
  const reply = '<Error><Code>NoSuchKey</Code></Error>';
  const { origin, close } = await startHttpServer(({ method, headers }, answer) => {
    if (method === 'GET') return answer.end('<ListBucketResult><NextContinuationToken/></ListBucketResult>');
    return answer.writeHead(headers.expect ? 417 : method === 'DELETE' ? 404 : 429).end(reply);
  });
  const store = s3({ endpoint: origin });
  const path = await fileOf(randomBytes(3_000_000));
  const limited = expect(store.put('large', path)).rejects.toMatchObject(unavailable);
  const listed = expect(keysIn(store)).resolves.toEqual([]);
  await Promise.all([store.check(), store.remove('missing'), limited, listed]).finally(close);
  store.close();
});

test('rejects when the disk fails in the middle of an upload to S3', async () => {
  const store = s3();
  // A folder can be opened, but reading it fails.
  await expect(store.put(`${randomUUID()}-large`, root)).rejects.toThrow('EISDIR');
  store.close();
});
