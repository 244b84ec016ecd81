import { z } from 'zod';
import { defineEndpoint } from './endpoint.ts';
import { idempotencyErrors, idempotencyHeader } from './idempotency.ts';
import { id, idSegment, line, page, pageQuery, text, time } from './schemas.ts';

export const letterStates = ['draft', 'open', 'sent', 'closed'] as const;
export type LetterState = (typeof letterStates)[number];
const state = z.enum(letterStates);

const letter = z.strictObject({
  id,
  user_id: id,
  title: z.string(),
  state,
  webforms: z.array(
    z.strictObject({
      webform_id: id,
      required: z.boolean(),
      skipped: z.boolean(),
      skipped_at: time.nullable(),
      reason: z.string().nullable(),
    }),
  ),
  version: z.int().meta({ description: 'Grows with every change of the letter.' }),
  created_at: time,
  updated_at: time,
});
export type Letter = z.output<typeof letter>;

/** What has happened to a letter. Names are added, never changed. */
export const letterEvents = [
  'created',
  'webform_skipped',
  'webform_unskipped',
  'skip_reason_changed',
  'title_changed',
  'state_changed',
] as const;
export type LetterEvent = (typeof letterEvents)[number];

const service = 'letters';
const rateLimit = { requests: 600, seconds: 60 };
const params = z.strictObject({ id: idSegment });
const etag = { ETag: 'Changes whenever the letter does; for If-Match.' };

export const updateLetterSkippedWebform = defineEndpoint({
  name: 'updateLetterSkippedWebform',
  method: 'POST',
  path: '/api/updateLetterSkippedWebform',
  service,
  access: 'user',
  rateLimit,
  summary: 'Skip an optional webform of one of your letters, or take that back.',
  headers: { ...idempotencyHeader, 'If-Match': "The letter's ETag: 412 when it has changed since." },
  body: {
    kinds: ['json'],
    maxBytes: 16_384,
    schema: z.strictObject({
      letter_id: id,
      webform_id: id,
      skipped: z.boolean(),
      reason: text(0, 500).optional().meta({
        description: 'Why it is skipped; left out: as before, empty: none. Skipping it again may change it.',
      }),
    }),
  },
  responses: {
    200: {
      description: 'The letter as it is now.',
      schema: z.strictObject({ success: z.literal(true), letter }),
      headers: etag,
    },
  },
  errors: [...idempotencyErrors, 'not_found', 'letter_closed', 'precondition_failed', 'webform_required'],
});

export const listLetters = defineEndpoint({
  name: 'listLetters',
  method: 'GET',
  path: '/api/letters',
  service,
  access: 'user',
  rateLimit,
  summary: 'List your letters, newest first.',
  query: z.strictObject({ state: state.optional(), ...pageQuery }),
  responses: { 200: { description: 'A page of letters.', schema: page(letter) } },
});

export const readLetter = defineEndpoint({
  name: 'readLetter',
  method: 'GET',
  path: '/api/letters/:id',
  service,
  access: 'user',
  rateLimit,
  summary: "Read one of your letters; with letters:write anybody's.",
  params,
  headers: { 'If-None-Match': 'ETags the client has: 304 when one of them is current.' },
  responses: {
    200: { description: 'The letter.', schema: letter, headers: etag },
    304: { description: 'The client has the current one.' },
  },
  errors: ['not_found'],
});

export const readLetterHistory = defineEndpoint({
  name: 'readLetterHistory',
  method: 'GET',
  path: '/api/letters/:id/history',
  service,
  access: 'user',
  rateLimit,
  summary: "What has happened to one of your letters, newest first; with letters:write to anybody's.",
  params,
  query: z.strictObject(pageQuery),
  responses: {
    200: {
      description: 'A page of its history.',
      schema: page(
        z.strictObject({
          id,
          at: time,
          event: z.enum(letterEvents),
          actor: z.string().meta({ description: 'Who did it: user:<id>, client:<name> or command.' }),
          details: z.record(z.string(), z.unknown()),
        }),
      ),
    },
  },
  errors: ['not_found'],
});

export const updateLetter = defineEndpoint({
  name: 'updateLetter',
  method: 'PATCH',
  path: '/api/letters/:id',
  service,
  access: 'letters:write',
  rateLimit,
  summary: "Change anybody's letter: its title, or its state along the allowed ways.",
  params,
  headers: {
    'If-Match': { description: "The letter's ETag. 412 when it has changed since.", required: true },
  },
  body: {
    kinds: ['json'],
    maxBytes: 16_384,
    schema: z
      .strictObject({ title: line(1, 200).optional(), state: state.optional() })
      .refine((change) => Object.keys(change).length > 0, 'Give a title or a state.')
      .meta({ minProperties: 1 }),
  },
  responses: { 200: { description: 'The letter as it is now.', schema: letter, headers: etag } },
  errors: [
    'not_found',
    'precondition_required',
    'precondition_failed',
    'letter_closed',
    'state_change_not_allowed',
  ],
});
