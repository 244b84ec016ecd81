import { expect, test } from '@jest/globals';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json, text } from 'node:stream/consumers';
import { startHttpServer } from '../../test/support/http-server.ts';
import { useStarted } from '../../test/support/use-started.ts';
import { token } from './auth.ts';
import { clearModel } from './cache-admin.ts';
import { call, ContractViolation } from './client.ts';
import { readContent } from './content.ts';
import { deleteFailedJob } from './failed-jobs.ts';

let answer: (request: IncomingMessage, response: ServerResponse) => unknown;
const server = useStarted(() => startHttpServer((request, response) => void answer(request, response)));

const says = (status: number, body?: unknown) => {
  answer = (_request, response) =>
    response.writeHead(status).end(body === undefined ? '' : JSON.stringify(body));
};
const envelope = (error: string, code: number) => ({ error, code, message: 'M', request_id: 'R' });
const clear = () => call(server.origin, clearModel, { body: { model: 'webform', id: 1 }, token: 't' });

test('sends the method, path and token that the contract defines', async () => {
  const seen: unknown[] = [];
  answer = ({ method, url, headers }, response) => {
    seen.push([method, url, headers.authorization, headers['content-type']]);
    response.writeHead(204).end();
  };
  await call(server.origin, deleteFailedJob, { params: { id: 5 }, token: 't' });
  expect(seen).toEqual([['DELETE', '/api/admin/failed-jobs/5', 'Bearer t', undefined]]);
});

test('encodes parameters and query and returns the reply', async () => {
  let seen: string | undefined;
  const record = { model: 'webform', id: 1, title: 'T', version: 1, updated_at: '2026-01-31T09:30:00.000Z' };
  answer = (request, response) => {
    seen = request.url;
    response.end(JSON.stringify(record));
  };
  const options = { params: { model: 'a/b', id: 1 }, query: { view: 'summary' } };
  expect((await call(server.origin, readContent, options)).body).toEqual(record);
  expect(seen).toBe('/api/content/a%2Fb/1?view=summary');
});

test('sends the body in the first kind that the endpoint accepts', async () => {
  answer = async (request, response) => {
    const { model } = (await json(request)) as { model: string };
    response.writeHead(200).end(JSON.stringify({ success: model === 'webform', keys_deleted: 1 }));
  };
  expect((await clear()).body).toEqual({ success: true, keys_deleted: 1 });
  answer = async (request, response) => {
    const [type, form] = [request.headers['content-type'], await text(request)];
    const scope = `${type} ${form}`;
    response.end(JSON.stringify({ access_token: 'x', token_type: 'Bearer', expires_in: 1, scope }));
  };
  const answered = await call(server.origin, token, { body: { grant_type: 'client_credentials' } });
  expect(answered.body?.scope).toBe(
    'application/x-www-form-urlencoded;charset=UTF-8 grant_type=client_credentials',
  );
});

test('returns a documented error', async () => {
  says(503, envelope('cache_unavailable', 503));
  expect(await clear()).toMatchObject({ status: 503, error: { error: 'cache_unavailable' } });
});

test.each([
  ['a body that does not match the schema', 200, { success: true }],
  ['an undocumented status', 418, {}],
  ['an error without the envelope', 503, { message: 'Sorry' }],
  ['an undocumented error', 404, envelope('not_found', 404)],
  ['an error with the status of another error', 500, envelope('cache_unavailable', 500)],
  ['an envelope whose code differs from the status', 503, envelope('cache_unavailable', 500)],
])('throws ContractViolation for %s', async (_, status, body) => {
  says(status, body);
  await expect(clear()).rejects.toThrow(ContractViolation);
});
