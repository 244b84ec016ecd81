// The measured part of content-cache's contract, reading and clearing a record, on the same PostgreSQL. Only the cache
// differs. fast-jwt verifies tokens and caches verified tokens.
import { createServer } from 'node:http';
import express from 'express';
import pg from 'pg';
import * as settings from './settings.mjs';

/** In seconds. */
export const ttl = 300;
export const views = ['full', 'summary'];

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const columns = { full: 'title, version, updated_at, body', summary: 'title, version, updated_at' };

export async function load(model, id, view) {
  const text = `SELECT ${columns[view]} FROM content.record WHERE model = $1 AND id = $2`;
  const { rows } = await pool.query(text, [model, id]);
  if (rows.length === 0) return null;
  const [{ title, body, version, updated_at }] = rows;
  return { model, id: Number(id), title, body, version: Number(version), updated_at };
}

const verify = settings.verifierOfTokens();

function authenticate(request, response, next) {
  try {
    request.user = verify(request);
  } catch {
    return response.status(401).json({ error: 'invalid_token' });
  }
  next();
}

/** `read` resolves with a record or its JSON. After `clear` the next read returns the committed state. */
export function serve({ read, clear }) {
  const app = express();
  // express 5 awaits them.
  // oxlint-disable-next-line oxc/no-async-endpoint-handlers
  app.get(settings.route, authenticate, async ({ params: { model, id }, query }, response) => {
    const record = await read(model, id, query.view ?? 'full');
    const text = typeof record === 'string' ? record : JSON.stringify(record);
    response.set('Cache-Control', 'private, no-cache').type('json').send(text);
  });
  // oxlint-disable-next-line oxc/no-async-endpoint-handlers
  app.post('/api/admin/cache/clear-model', authenticate, express.json(), async ({ body }, response) => {
    const deleted = await clear(body.model, body.id);
    response.json({ success: true, keys_deleted: deleted });
  });
  const server = app.listen(settings.port, '127.0.0.1', 4096);
  // Longer than the client keeps an idle connection, so that none is closed while a request is being sent.
  server.keepAliveTimeout = 60_000;
  // The gateway requests the readiness here.
  createServer((_, response) => response.end('{"status":"ok"}')).listen(settings.port + 1000, '127.0.0.1');
}
