// Demo identity provider of `IDENTITY_DEMO=1 npm start`. Usage: node main.ts <port> <redirect URI of the platform>
import { createServer } from 'node:http';
import { DEMO_USER_EMAIL } from '../demo-data.ts';
import { HOST } from '../ports.ts';
import { PLATFORM_CLIENT } from './demo.ts';
import { createIdentityProvider, type Person } from './provider.ts';

/** An existing user, a new user, and a person with an unverified email. */
const people: readonly Person[] = [
  {
    subject: 'uma',
    name: 'Uma User',
    email: DEMO_USER_EMAIL,
    emailVerified: true,
    suborgs: ['north', 'south'],
  },
  {
    subject: 'nils',
    name: 'Nils Newcomer',
    email: 'nils@example.com',
    emailVerified: true,
    suborgs: ['south'],
  },
  {
    subject: 'mallory',
    name: 'Mallory Impostor',
    email: 'admin@example.com',
    emailVerified: false,
    suborgs: [],
  },
];

const [port = '', redirectUri = ''] = process.argv.slice(2);
const issuer = `http://${HOST}:${port}`;
const client = { ...PLATFORM_CLIENT, redirectUri };
createServer(createIdentityProvider({ issuer, client, people })).listen(Number(port), HOST);
