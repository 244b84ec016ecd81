import { expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import fc from 'fast-check';
import { HttpError } from '@content-platform/chassis';
import { formOf } from '../../test/support/form.ts';
import { startHttpServer } from '../../test/support/http-server.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { until } from '../../test/support/wait.ts';
import { receiveFile, type ReceivedFile } from './receive-file.ts';

const folder = temporaryFolder();
let path: string;
const ends: (ReceivedFile | Error)[] = [];
let [count, arrived] = [0, 0];
const server = useStarted(() =>
  startHttpServer((request, response) => {
    path = join(folder, String((count += 1)));
    const before = request.socket.bytesRead;
    const ready = request.headers['x-late'] ? once(request, 'close').catch(() => undefined) : undefined;
    void Promise.resolve(ready)
      .then(() => receiveFile(request, path))
      .then(
        (received) => ends.push(received),
        (error: Error) => ends.push(error),
      )
      .finally(() => {
        arrived = request.socket.bytesRead - before;
        response.end();
        request.resume();
      });
  }),
);

async function receive(body: Uint8Array<ArrayBuffer>, type: string): Promise<ReceivedFile | Error> {
  const before = ends.length;
  await fetch(server.origin, { method: 'POST', body, headers: { 'Content-Type': type } });
  return until('it has ended', () => ends[before]);
}

const statusOf = (end: ReceivedFile | Error) => (end instanceof HttpError ? end.status : end);

test.each([
  ['the wrong field', [{ bytes: Buffer.alloc(2_500_000), field: 'photo' }]],
  ['a second file', [{ bytes: Buffer.alloc(2_500_000) }, { bytes: Buffer.alloc(2_500_000) }]],
])('refuses %s with 422 before most of the body has arrived', async (_, parts) => {
  const { type, body } = formOf(parts);
  expect(statusOf(await receive(body, type))).toBe(422);
  expect(arrived).toBeLessThan(body.length * 0.6);
});

test('writes the file to the disk and returns its hash, size and name', async () => {
  const bytes = Buffer.alloc(3_000_000, 'some bytes');
  const { type, body } = formOf([{ bytes, name: 'Föhr.jpg' }]);
  const checksum = createHash('sha256').update(bytes).digest();
  expect(await receive(body, type)).toEqual({ checksum, bytes: bytes.length, name: 'Föhr.jpg' });
  expect((await readFile(path)).equals(bytes)).toBe(true);
});

test('refuses a form that is cut off at any position', async () => {
  const { type, body } = formOf([
    { bytes: Buffer.alloc(1_000, 'x') },
    { bytes: Buffer.alloc(10), field: 'other' },
  ]);
  for (let length = 0; length < body.length - 1; length += 97)
    expect([400, 422]).toContain(statusOf(await receive(body.subarray(0, length), type)));
});

test.each([{}, { 'X-Late': 'true' }])(
  'refuses the form of a client that disconnects, even before it is read: %j',
  async (more) => {
    const [before, begun] = [ends.length, count];
    const { type, body } = formOf([{ bytes: Buffer.alloc(500_000) }]);
    const headers = { 'Content-Type': type, 'Content-Length': body.length, ...more };
    const request = httpRequest(server.origin, { method: 'POST', headers });
    request.on('error', () => undefined);
    request.write(body.subarray(0, 40_000));
    await until('it is on its way', () => count > begun);
    request.destroy();
    expect(statusOf(await until('it has ended', () => ends[before], 10_000))).toBe(400);
  },
);

test('accepts or refuses each of 300 damaged forms', async () => {
  const whole = formOf([
    { bytes: Buffer.from('some bytes') },
    { bytes: Buffer.from('more'), field: 'b', name: null },
  ]);
  const one = formOf([{ bytes: Buffer.alloc(300, 'image') }]);
  const cut = fc.record({
    form: fc.constantFrom(whole, one),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    put: fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc.constantFrom('\r\n', '--', '\r\n\r\n', '"', ';', ':').map((text) => Buffer.from(text)),
    ),
    drop: fc.nat(40),
  });
  for (const { form, at, put, drop } of fc.sample(cut, { numRuns: 300, seed: 5 })) {
    const place = Math.floor(at * form.body.length);
    const body = Buffer.concat([form.body.subarray(0, place), put, form.body.subarray(place + drop)]);
    const end = await receive(body, form.type);
    if (end instanceof Error) expect([400, 413, 422]).toContain(statusOf(end));
  }
});

test.each([
  'multipart/form-data',
  'multipart/form-data; boundary=',
  `multipart/form-data; boundary=${'x'.repeat(5_000)}`,
  'multipart/form-data; boundary="a',
  'multipart/form-data; boundary=a; charset=nothing',
  'multipart/mixed; boundary=a',
])('refuses the content type %.60s', async (type) => {
  expect([400, 422]).toContain(statusOf(await receive(Buffer.from('--a--\r\n'), type)));
});
