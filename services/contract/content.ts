import { z } from 'zod';
import { endpointsWith, ifNoneMatch, notModified } from './endpoint.ts';
import { id, idSegment, model, models, opaqueCursor, page, pageLimit, time, type Model } from './schemas.ts';

export const views = ['full', 'summary'] as const;
export type View = (typeof views)[number];

const summary = z.strictObject({
  model,
  id,
  title: z.string(),
  version: z.int().describe('Version number; increases with every change of the record.'),
  updated_at: time,
});
const full = z.strictObject({ ...summary.shape, body: z.unknown().describe('Any JSON value.') });

const define = endpointsWith({ service: 'content-cache', access: 'reader' });

export const readContent = define('readContent', 'GET', '/api/content/:model/:id', {
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'Read a content record through the cache.',
  description:
    'Machine clients need the scope `content:read`. An installation can restrict models to callers with the scope `content:restricted`.',
  params: z.strictObject({ model, id: idSegment }),
  query: z.strictObject({ view: z.enum(views).default('full') }),
  headers: ifNoneMatch,
  responses: {
    200: {
      description: 'The record. The `summary` view has no `body`.',
      schema: z.union([full, summary]),
      headers: {
        'X-Cache':
          '`hit`: from the cache. `miss`: from the database, then cached. `bypass`: from the database, because the cache was unavailable.',
        ETag: 'Identifies this content of the reply; changes with it.',
        'Cache-Control': 'private, no-cache',
      },
    },
    ...notModified,
  },
  errors: ['not_found'],
});

const idList = z
  .string()
  .regex(/^[1-9]\d{0,15}(,[1-9]\d{0,15}){0,99}$/, 'Must be 1 to 100 IDs, separated by commas.')
  .describe('1 to 100 IDs, separated by commas. Duplicates are returned once, at their first place.')
  .transform((text) => text.split(',').map(Number))
  .pipe(z.array(id));

export const listContent = define('listContent', 'GET', '/api/content/:model', {
  summary: 'List or read several records of a model.',
  description:
    'Without `ids`: the records in the order of their ids, from the database. With `ids`: these records in this order, through the cache as in the single read. A page can have fewer records than `limit` if they are large; ids of records that are too large for one reply get 422. An installation can restrict models to callers with the scope `content:restricted`, and lists of models to callers with the scope `content:list`.',
  params: z.strictObject({ model }),
  query: z
    .strictObject({
      ids: idList.optional(),
      limit: pageLimit(100, 50).optional(),
      cursor: opaqueCursor.optional().describe('Value of `next_cursor` in the previous page of this model.'),
      view: z.enum(views).default('full'),
    })
    .refine(({ ids, limit, cursor }) => ids === undefined || (limit ?? cursor) === undefined, {
      path: ['ids'],
      message: 'Send ids without limit and cursor.',
    }),
  responses: {
    200: {
      description: 'The records. The `summary` view has no `body`.',
      schema: page(z.union([full, summary])).extend({
        missing: z.array(id).optional().describe('Only with `ids`: the requested records that do not exist.'),
      }),
    },
  },
});

const change = z.strictObject({
  model,
  id,
  version: summary.shape.version.describe(
    'Version of the record; for a deleted record, its last version + 1.',
  ),
  deleted: z.boolean(),
  changed_at: time,
});
const modelName = `(${models.join('|')})`;

export const listChanges = define('listChanges', 'GET', '/api/content/changes', {
  summary: 'List the latest change of each record.',
  description:
    'Without `after`: the latest change of every record that exists. With `after`: the records that were changed, created or deleted since that reply. A record appears once in the log, with its latest change, and a change may be returned more than once. Repeat with `next_cursor` until `up_to_date` is true. Changes of models that need the scope `content:list` or `content:restricted` are left out for other callers.',
  query: z.strictObject({
    after: opaqueCursor.optional().describe('Value of `next_cursor` in the previous reply.'),
    limit: pageLimit(1_000, 500).default(500),
    models: z
      .string()
      .regex(
        new RegExp(`^${modelName}(,${modelName})*$`),
        `Must be some of ${models.join(', ')}, separated by commas.`,
      )
      .describe('Models, separated by commas. Default: every model that the caller may list.')
      .transform((text) => [...new Set(text.split(',') as Model[])])
      .optional(),
  }),
  responses: {
    200: {
      description: 'A page of changes.',
      schema: page(change).extend({
        next_cursor: z.string().describe('The cursor for `after`; never null.'),
        up_to_date: z
          .boolean()
          .describe('Whether the client has every change committed before this request.'),
      }),
    },
  },
  errors: ['cursor_expired'],
});
