import { z } from 'zod';
import { endpointsWith, ifNoneMatch } from './endpoint.ts';
import { idempotencyErrors, idempotencyHeader } from './idempotency.ts';
import { id, idSegment, page, pageQuery, time } from './schemas.ts';

/** The largest accepted file, in bytes. */
export const maxUploadBytes = 10 * 1024 * 1024;
/** Room for the other parts of the form, in bytes. */
const formBytes = 16 * 1024;

/** Longest side of each variant in pixels; smaller images keep their size. */
export const imageVariants = { thumb: 320, medium: 1280, large: 2560 } as const;
export type ImageVariant = keyof typeof imageVariants;
/** Names of variants: a PDF has `original` only, an image the others. */
export const variantNames = ['thumb', 'medium', 'large', 'original'] as const;
export type VariantName = (typeof variantNames)[number];

const pixels = z.int().min(1).nullable().meta({ description: 'Pixels; null for a PDF.' });

const file = z.strictObject({
  id,
  mime: z.string().meta({ description: 'What the file is by its content.' }),
  bytes: z.int(),
  width: pixels,
  height: pixels,
  checksum: z.string().meta({ description: 'SHA-256 of the upload in hexadecimal digits.' }),
  placeholder: z
    .string()
    .nullable()
    .meta({ description: 'ThumbHash in base64, to show until a variant is there; null for a PDF.' }),
  created_at: time,
  variants: z.array(
    z.strictObject({
      name: z.enum(variantNames),
      url: z.url(),
      width: pixels,
      height: pixels,
      bytes: z.int(),
    }),
  ),
});
export type MediaFile = z.output<typeof file>;

const params = z.strictObject({ id: idSegment });

const define = endpointsWith({ service: 'media-upload', access: 'user' });

export const upload = define('upload', 'POST', '/api/upload', {
  rateLimit: { requests: 120, seconds: 60 },
  // 15 s in the queue and 20 s of processing; both twice if memory was short.
  replyWithinSeconds: 75,
  latencyClass: 'upload',
  summary:
    'Upload a JPEG, PNG, WebP, AVIF or still GIF of up to 10 MB and 24 megapixels, or a PDF of up to 10 MB.',
  headers: idempotencyHeader,
  body: {
    kinds: ['multipart'],
    maxBytes: maxUploadBytes + formBytes,
    schema: z.strictObject({ file: z.file() }),
    files: {
      file: ['image/jpeg', 'image/png', 'image/webp', 'image/avif', 'image/gif', 'application/pdf'],
    },
  },
  responses: {
    200: { description: 'This user has the same file already.', schema: file },
    201: { description: 'The new file with its variants.', schema: file },
  },
  errors: [
    ...idempotencyErrors,
    'malformed_request',
    'animated_image',
    'image_too_large',
    'image_too_costly',
    'unreadable_file',
  ],
});

export const listMedia = define('listMedia', 'GET', '/api/media', {
  summary: 'List your files, newest first.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of files.', schema: page(file) } },
});

export const readMedia = define('readMedia', 'GET', '/api/media/:id', {
  summary: 'What is known of one of your files.',
  params,
  responses: { 200: { description: 'The file.', schema: file } },
  errors: ['not_found'],
});

export const deleteMedia = define('deleteMedia', 'DELETE', '/api/media/:id', {
  summary: 'Delete one of your files with its variants.',
  params,
  responses: { 204: { description: 'The file is gone.' } },
  errors: ['not_found'],
});

const fileTypes = ['image/webp', 'application/pdf'] as const;
const fileHeaders = {
  ETag: 'Never changes.',
  'Cache-Control': 'private, max-age=31536000, immutable',
  'Content-Disposition': 'inline for pictures, attachment for PDFs, with the name of the upload.',
};

export const readVariant = define('readVariant', 'GET', '/api/media/:id/:variant', {
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'A variant of one of your pictures, as WebP, or the PDF that you uploaded.',
  params: z.strictObject({ id: idSegment, variant: z.enum(variantNames) }),
  headers: {
    ...ifNoneMatch,
    Range: 'One range of bytes: 206.',
    'If-Range': 'The ETag that the range is of; the whole file when it is another one.',
  },
  responses: {
    200: { description: 'The file.', contentType: fileTypes, headers: fileHeaders },
    206: {
      description: 'A part of the file.',
      contentType: fileTypes,
      headers: { ...fileHeaders, 'Content-Range': 'Which part of how much.' },
    },
    304: { description: 'The client has it.' },
  },
  errors: ['not_found', 'range_not_satisfiable'],
});
