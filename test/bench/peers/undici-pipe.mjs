// A bare proxy: express and undici's request.
import { pipeline } from 'node:stream/promises';
import express from 'express';
import { Pool } from 'undici';
import { port, upstream } from './settings.mjs';

const pool = new Pool(upstream, { connections: 64 });
const app = express();

async function pipe(request, response) {
  const { method, url: path, headers } = request;
  const { connection: _, 'transfer-encoding': __, ...kept } = headers;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const reply = await pool.request({ method, path, headers: kept, body: hasBody ? request : null });
  const { connection: ___, 'keep-alive': ____, ...replyHeaders } = reply.headers;
  response.writeHead(reply.statusCode, replyHeaders);
  await pipeline(reply.body, response);
}

// express 5 awaits it.
// oxlint-disable-next-line oxc/no-async-endpoint-handlers
app.use(pipe);

app.listen(port, '127.0.0.1');
