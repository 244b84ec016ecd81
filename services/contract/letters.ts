import { z } from 'zod';
import {
  endpointsWith,
  idempotencyErrors,
  idempotencyHeader,
  ifNoneMatch,
  jsonBody,
  jsonBodyOf,
  notModified,
} from './endpoint.ts';
import { id, idParams, singleLineText, page, pageQuery, multiLineText, time } from './schemas.ts';

export const letterStates = ['draft', 'open', 'sent', 'closed'] as const;
export type LetterState = (typeof letterStates)[number];
const state = z.enum(letterStates);
const title = singleLineText(1, 200);

export const letter = z.strictObject({
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
  version: z.int().describe('Version number; increases with every change of the letter.'),
  created_at: time,
  updated_at: time,
});
export type Letter = z.output<typeof letter>;

/** Events of a letter's history. Names are stable: add new ones, do not rename. */
export const letterEvents = [
  'created',
  'webform_skipped',
  'webform_unskipped',
  'skip_reason_changed',
  'title_changed',
  'state_changed',
] as const;
export type LetterEvent = (typeof letterEvents)[number];

export const historyEntry = z.strictObject({
  id,
  at: time,
  event: z.enum(letterEvents),
  actor: z.string().describe('Author: user:<id> (user once the user was deleted), client:<name> or command.'),
  details: z.record(z.string(), z.unknown()),
});

const etag = { ETag: 'Version of the letter, for If-Match.' };

const define = endpointsWith({ service: 'letters', access: 'user' });

export const updateLetterSkippedWebform = define(
  'updateLetterSkippedWebform',
  'POST',
  '/api/updateLetterSkippedWebform',
  {
    summary: 'Skip or unskip a webform of your letter.',
    description: 'Only optional webforms can be skipped.',
    headers: {
      ...idempotencyHeader,
      'If-Match': 'ETag of the letter. If the letter has changed since, the response is 412.',
    },
    body: jsonBody({
      letter_id: id,
      webform_id: id,
      skipped: z.boolean(),
      reason: multiLineText(0, 500)
        .optional()
        .describe('If absent, the stored reason stays; an empty string deletes it.'),
    }),
    responses: {
      200: {
        description: 'The letter after the change.',
        schema: z.strictObject({ success: z.literal(true), letter }),
        headers: etag,
      },
    },
    errors: [...idempotencyErrors, 'not_found', 'letter_closed', 'precondition_failed', 'webform_required'],
  },
);

export const createLetter = define('createLetter', 'POST', '/api/letters', {
  access: 'letters:write',
  summary: 'Create a letter.',
  description: 'The new letter is a draft. The content of the webforms is not checked.',
  headers: idempotencyHeader,
  body: jsonBody({
    user_id: id.describe('ID of the user that the letter belongs to.'),
    title,
    webforms: z
      .array(z.strictObject({ webform_id: id, required: z.boolean() }))
      .max(100)
      .refine((all) => new Set(all.map(({ webform_id }) => webform_id)).size === all.length, {
        message: 'A webform is listed twice.',
      })
      .describe('Webforms; replies sort them by `webform_id`. A required webform cannot be skipped.'),
  }),
  responses: { 201: { description: 'The new letter.', schema: letter, headers: etag } },
  errors: idempotencyErrors,
});

export const listLetters = define('listLetters', 'GET', '/api/letters', {
  summary: 'List your letters, newest first.',
  query: z.strictObject({ state: state.optional(), ...pageQuery }),
  responses: { 200: { description: 'A page of letters.', schema: page(letter) } },
});

export const readLetter = define('readLetter', 'GET', '/api/letters/:id', {
  summary: 'Read a letter.',
  description: 'Returns your own letters. With the scope `letters:write`, returns the letters of all users.',
  params: idParams,
  headers: ifNoneMatch,
  responses: { 200: { description: 'The letter.', schema: letter, headers: etag }, ...notModified },
  errors: ['not_found'],
});

export const readLetterHistory = define('readLetterHistory', 'GET', '/api/letters/:id/history', {
  summary: 'List the history of a letter, newest first.',
  description: 'Covers your own letters. With the scope `letters:write`, covers the letters of all users.',
  params: idParams,
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of the history.', schema: page(historyEntry) } },
  errors: ['not_found'],
});

export const updateLetter = define('updateLetter', 'PATCH', '/api/letters/:id', {
  access: 'letters:write',
  summary: 'Change the title or state of a letter.',
  description: 'Applies to the letters of all users. Only the allowed state transitions are accepted.',
  params: idParams,
  headers: {
    'If-Match': {
      description: 'ETag of the letter. If the letter has changed since, the response is 412.',
      required: true,
    },
  },
  body: jsonBodyOf(
    z
      .strictObject({ title: title.optional(), state: state.optional() })
      .refine((change) => Object.keys(change).length > 0, 'Give a title or a state.')
      .meta({ minProperties: 1 }),
  ),
  responses: { 200: { description: 'The letter after the change.', schema: letter, headers: etag } },
  errors: [
    'not_found',
    'precondition_required',
    'precondition_failed',
    'letter_closed',
    'state_change_not_allowed',
  ],
});
