import { z } from 'zod';
import { endpointsWith, jsonBody } from './endpoint.ts';
import { id, idSegment, singleLineText, page, pageQuery, time } from './schemas.ts';

export const platforms = ['android', 'ios', 'web'] as const;
const platform = z.enum(platforms);
export type Platform = (typeof platforms)[number];

/** A token of the push service. */
const token = z.string().regex(/^[\x20-\x7e]{1,4096}$/, 'Must be 1 to 4096 printable ASCII characters.');

/** The push service's outcome of a message to a token. */
export const outcomes = ['delivered', 'unregistered', 'invalid'] as const;
export type Outcome = (typeof outcomes)[number];

const device = z.strictObject({
  id,
  platform: platform.nullable(),
  name: z.string().nullable(),
  token_end: z.string().meta({ description: 'The last 6 characters of the token: it is never shown whole.' }),
  registered_at: time,
  last_seen_at: time,
  stale: z.boolean().meta({ description: 'Not seen for 60 days; after 270 it is removed.' }),
});
export type Device = z.output<typeof device>;

const params = z.strictObject({ id: idSegment });

const define = endpointsWith({ service: 'devices', access: 'user' });

export const registerFcmToken = define('registerFcmToken', 'POST', '/api/register-fcm-token', {
  summary:
    'Register this device for push messages, or say that it is still there. A token that another user had is theirs no more. Of more than 20 devices the longest unseen goes.',
  body: jsonBody(
    z.strictObject({
      token,
      platform: platform.optional(),
      name: singleLineText(1, 100).optional(),
      app_version: singleLineText(1, 50).optional(),
    }),
  ),
  responses: {
    200: {
      description: 'The device.',
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
  summary: 'Send no more messages to one of your devices.',
  params,
  responses: { 204: { description: 'The device is not registered any more.' } },
  errors: ['not_found'],
});

export const listDeviceTokens = define('listDeviceTokens', 'GET', '/api/admin/users/:id/device-tokens', {
  access: 'devices:manage',
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'List the tokens of a user, newest first: for what sends the messages.',
  params,
  query: z.strictObject(pageQuery),
  responses: {
    200: {
      description: 'A page of tokens; empty for a user without devices.',
      schema: page(z.strictObject({ token, platform: platform.nullable(), last_seen_at: time })),
    },
  },
});

export const deviceFeedback = define('deviceFeedback', 'POST', '/api/admin/devices/feedback', {
  access: 'devices:manage',
  summary:
    'Tell what the push service said of up to 1,000 tokens: unregistered and invalid ones are removed.',
  body: {
    ...jsonBody(
      z.strictObject({ results: z.array(z.strictObject({ token, outcome: z.enum(outcomes) })).max(1_000) }),
    ),
    // 1,000 of the longest tokens, every character of them escaped.
    maxBytes: 9 * 1024 * 1024,
  },
  responses: {
    200: {
      description: 'How many were removed, and of how many nothing was known.',
      schema: z.strictObject({ removed: z.int(), unknown: z.int() }),
    },
  },
});
