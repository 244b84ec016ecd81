// Demo identity service of `IDENTITY_DEMO=1 npm start`. Usage: node main.ts <port> <redirect URI of the platform>
import { createServer } from 'node:http';
import { HOST } from '../ports.ts';
import { DEMO_CLIENT, DEMO_PEOPLE } from './people.ts';
import { createIdentityProvider } from './provider.ts';

const [port = '', redirectUri = ''] = process.argv.slice(2);
const issuer = `http://${HOST}:${port}`;
const client = { ...DEMO_CLIENT, redirectUri };
createServer(createIdentityProvider({ issuer, client, people: DEMO_PEOPLE })).listen(Number(port), HOST);
