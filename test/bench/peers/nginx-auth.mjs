// The auth_request endpoint for nginx, which verifies no tokens itself: 204 for a valid token, else 401. fast-jwt
// caches verified tokens.
import { createServer } from 'node:http';
import { port, verifierOfTokens } from './settings.mjs';

const verify = verifierOfTokens();

createServer((request, response) => {
  try {
    const { sub } = verify(request);
    response.writeHead(204, { 'X-User': sub }).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(port, '127.0.0.1');
