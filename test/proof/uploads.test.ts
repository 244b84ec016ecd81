import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as contract from '@content-platform/contract';
import { call } from '@content-platform/contract/client';
import { newUser, tokenOf, type OwnUser } from '../support/accounts.ts';
import { download, fileOf, largeImage, newImage, uploaded, type Bytes } from '../support/media.ts';
import { startOwnStack, type OwnStack } from '../support/own-stack.ts';
import { descendantsOf, isAlive, treeRss } from '../support/processes.ts';
import { scrape } from '../support/metrics.ts';
import { read } from '../support/platform.ts';
import { isStackReady, stack } from '../support/stack.ts';
import { startTraffic } from '../support/traffic.ts';
import { until } from '../support/wait.ts';

/** These tests kill and overload the service, so they start their own stack. */
let own: OwnStack;
let token: string;
let large: Bytes;
beforeAll(async () => {
  own = await startOwnStack();
  token = await tokenOf(stack().gateway, 'user');
  large = await largeImage(5712, 4284);
}, 300_000);
afterAll(() => own?.stop());
beforeEach(() => until('every service is ready', isStackReady));

/** Creates an upload from an image of 24 megapixels; appended bytes make it new. */
const another = (): Bytes => Buffer.concat([large, randomBytes(16)]);
const send = (bytes: Bytes, headers: Record<string, string> = {}, as = token) =>
  call(stack().gateway, contract.upload, { body: fileOf(bytes), token: as, headers });
const mediaFolder = () => join(dirname(process.env['STACK_FILE']!), 'media');
const underWay = () => readdirSync(join(mediaFolder(), 'tmp')).length;
const uploads = async (outcome: string) =>
  (await scrape('media-upload')).get(`uploads_total{outcome="${outcome}"}`);
const atWork = () => until('an upload is there', () => underWay() > 0);

test('50 simultaneous uploads of 24 megapixels succeed or get Retry-After, with bounded memory and working reads', async () => {
  const pid = own.pidOf('media-upload');
  // One user has eight slots.
  const users: OwnUser[] = [];
  while (users.length < 7) users.push(await newUser());
  const images = Array.from({ length: 50 }, another);
  const statuses: number[] = [];
  const reading = startTraffic(10, async () => void statuses.push((await read('webform', 1)).status));
  let peak = 0;
  const watching = startTraffic(10, async () => void (peak = Math.max(peak, treeRss(pid))));
  const answers = await Promise.all(
    images.map((image, index) => send(image, {}, users[index % users.length]!.token)),
  );
  await Promise.all([reading.stop(), watching.stop()]);

  const accepted = answers.filter(({ status }) => status === 201).length;
  const busy = answers.filter(({ status }) => status === 503);
  console.log(
    `50 uploads of 24 MP (${(large.length / 1e6).toFixed(1)} MB each): ${accepted} accepted, ${busy.length} told to retry; peak RSS ${Math.round(peak / 2 ** 20)} MB; ${statuses.length} reads meanwhile`,
  );
  expect(accepted + busy.length).toBe(50);
  expect(accepted).toBeGreaterThan(1);
  for (const { headers } of busy) expect(headers.get('retry-after')).toMatch(/^\d+$/);
  expect(peak).toBeLessThan(700 * 2 ** 20);
  expect(own.pidOf('media-upload')).toBe(pid);
  expect(await uploads('created')).toBe(accepted);
  expect(await uploads('busy')).toBe(busy.length);
  expect(statuses.length).toBeGreaterThan(10);
  expect(new Set(statuses)).toEqual(new Set([200]));
  await until('nothing is left of those that were refused', () => underWay() === 0);
  await uploaded(token, await newImage());
}, 600_000);

test('SIGTERM finishes uploads in progress and leaves no worker process', async () => {
  const pid = own.pidOf('media-upload');
  const children = descendantsOf(pid);
  expect(children.length).toBeGreaterThan(0);
  const sent = send(another());
  await atWork();
  process.kill(pid, 'SIGTERM');
  const answer = await sent;
  expect(answer).toMatchObject({ status: 201 });
  await until('it is another process', () => own.pidOf('media-upload') !== pid);
  expect(children.some(isAlive)).toBe(false);
  await until('every service is ready', isStackReady);
  for (const { url, bytes } of (answer.body as contract.MediaFile).variants)
    expect((await download(url, token)).body.length).toBe(bytes);
});

test('kill -9 during an upload leaves no worker process and no partial file, and the upload can be retried', async () => {
  const pid = own.pidOf('media-upload');
  const children = descendantsOf(pid);
  const image = another();
  const key = { 'Idempotency-Key': randomBytes(8).toString('hex') };
  const before = (await call(stack().gateway, contract.listMedia, { token })).body!.items.length;
  const sent = send(image, key);
  await atWork();
  await sleep(300);
  process.kill(pid, 'SIGKILL');
  expect((await sent).status).toBe(502);
  await until('no child is left', () => !children.some(isAlive));
  await until('it is another process', () => own.pidOf('media-upload') !== pid);
  await until('every service is ready', isStackReady);
  expect((await call(stack().gateway, contract.listMedia, { token })).body!.items.length).toBe(before);
  expect(await send(image)).toMatchObject({ status: 201 });
});
