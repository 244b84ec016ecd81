import { z } from 'zod';
import { profile, session } from './accounts.ts';
import { device } from './devices.ts';
import { endpointsWith } from './endpoint.ts';
import { historyEntry, letter } from './letters.ts';
import { id } from './schemas.ts';
import { linkedIdentity } from './users.ts';

const exported = z.strictObject({
  user: profile.extend({
    identities: z.array(
      linkedIdentity.extend({ subject: z.string().describe('ID of the user at the identity provider.') }),
    ),
  }),
  sessions: z.array(session.extend({ active: z.boolean().describe('Whether the session has not ended.') })),
  devices: z.array(z.strictObject({ ...device.shape, app_version: z.string().nullable() })),
  letters: z.array(z.strictObject({ ...letter.shape, history: z.array(historyEntry) })),
  files: z.array(
    z.strictObject({
      id,
      name: z.string().describe('Name of the upload.'),
      bytes: z.int().describe('Size of the file at `url` in bytes.'),
      url: z.url().describe('URL for a download with the same access token.'),
    }),
  ),
});

const define = endpointsWith({ service: 'auth', access: 'user' });

export const exportMe = define('exportMe', 'GET', '/api/me/export', {
  recentLogin: true,
  rateLimit: { requests: 60, seconds: 3_600 },
  summary: 'Export your personal data.',
  description:
    'Returns what the platform stores about you, newest first. A push token is shortened, and an image is its largest variant. While another export of yours runs, the response can be 429. If a service is unavailable, the response is 503. If a service fails later, or the export takes more than 5 minutes, the connection is closed before the end of the JSON: retry.',
  responses: {
    200: {
      description: 'The complete export, sent in pieces without Content-Length.',
      schema: exported,
      isStreamed: true,
    },
  },
});
