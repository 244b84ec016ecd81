import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { id, idParams, singleLineText, page, pageQuery, time } from './schemas.ts';

export const platforms = ['android', 'ios', 'web'] as const;
const platform = z.enum(platforms);
export type Platform = (typeof platforms)[number];

const token = z.string().regex(/^[\x20-\x7e]{1,4096}$/, 'Must be 1 to 4096 printable ASCII characters.');

/** Results that the push service returns for a message to a token. */
export const outcomes = ['delivered', 'unregistered', 'invalid'] as const;
export type Outcome = (typeof outcomes)[number];

export const device = z.strictObject({
  id,
  platform: platform.nullable(),
  name: z.string().nullable(),
  token_end: z.string().describe('Last 6 characters of the token.'),
  registered_at: time,
  last_seen_at: time,
  stale: z
    .boolean()
    .describe('Whether the device was last seen over 60 days ago. The platform removes it after 270 days.'),
});
export type Device = z.output<typeof device>;

const define = endpointsWith({ service: 'devices', access: 'user' });

export const registerFcmToken = define('registerFcmToken', 'POST', '/api/register-fcm-token', {
  summary: 'Register or refresh a device for push messages.',
  description:
    'Updates the time the device was last seen. If another user had registered the token, the device moves to you. A 21st device replaces the least recently seen one.',
  body: jsonBody({
    token,
    platform: platform.optional(),
    name: singleLineText(1, 100).optional(),
    app_version: singleLineText(1, 50).optional(),
  }),
  responses: {
    200: {
      description: 'The registered device.',
      schema: z.strictObject({ success: z.literal(true), device }),
    },
  },
});

export const listDevices = define('listDevices', 'GET', '/api/devices', {
  summary: 'List your devices, newest first.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of devices.', schema: page(device) } },
});

export const deleteDevice = define('deleteDevice', 'DELETE', '/api/devices/:id', {
  summary: 'Unregister one of your devices.',
  params: idParams,
  responses: { 204: { description: 'The device was unregistered.' } },
  errors: ['not_found'],
});

export const listDeviceTokens = define('listDeviceTokens', 'GET', '/api/admin/users/:id/device-tokens', {
  access: 'devices:manage',
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'List push tokens of a user, newest first.',
  description: 'For the program that sends push messages.',
  params: idParams,
  query: z.strictObject(pageQuery),
  responses: {
    200: {
      description: 'A page of tokens. The list is empty for a user without devices.',
      schema: page(z.strictObject({ token, platform: platform.nullable(), last_seen_at: time })),
    },
  },
});

export const deviceFeedback = define('deviceFeedback', 'POST', '/api/admin/devices/feedback', {
  access: 'devices:manage',
  summary: 'Report delivery outcomes of push tokens.',
  description: 'Accepts the outcomes of up to 1,000 tokens. Removes unregistered and invalid tokens.',
  body: {
    ...jsonBody({ results: z.array(z.strictObject({ token, outcome: z.enum(outcomes) })).max(1_000) }),
    // Fits 1,000 tokens of maximum length with every character escaped.
    maxBytes: 9 * 1024 * 1024,
  },
  responses: {
    200: {
      description: 'Numbers of removed tokens, and of tokens that were not registered.',
      schema: z.strictObject({ removed: z.int(), unknown: z.int() }),
    },
  },
});
