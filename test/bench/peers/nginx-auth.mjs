// What nginx asks by auth_request: 204 for a valid token, else 401. nginx itself verifies none. fast-jwt remembers tokens
// that it has verified.
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
