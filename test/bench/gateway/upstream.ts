import { internalPortOffset } from '@content-platform/contract';
// The upstream of every candidate, in its own process: 1 KB of JSON at any path. For the platform's gateway it also
// plays auth (key, no revocations) and the services' internal listeners (ready).
import { createServer } from 'node:http';

const port = Number(process.env['PORT']);
const record = {
  model: 'pathway',
  id: 1,
  title: 'Measured',
  version: 1,
  updated_at: '2026-01-01T00:00:00.000Z',
};
const empty = JSON.stringify({ ...record, body: { text: '' } });
const body = JSON.stringify({ ...record, body: { text: 'x'.repeat(1024 - empty.length) } });

createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const reply = request.url === '/.well-known/jwks.json' ? process.env['KEY_SET']! : body;
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': reply.length }).end(reply);
}).listen(port, '127.0.0.1');

createServer((_request, response) => response.end('{"revocations":[],"last":0}')).listen(
  port + internalPortOffset,
  '127.0.0.1',
);
