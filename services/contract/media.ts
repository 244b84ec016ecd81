import { z } from 'zod';
import { defineEndpoint } from './endpoint.ts';
import { idempotencyErrors, idempotencyHeader } from './idempotency.ts';
import { id, idSegment, page, pageQuery, time } from './schemas.ts';

/** The largest file that is taken, in bytes. */
export const maxUploadBytes = 10 * 1024 * 1024;
/** What the form may have around the file. */
const formBytes = 16 * 1024;

/** Longest side of each variant in pixels; what is smaller stays as it is. */
export const imageVariants = { thumb: 320, medium: 1280, large: 2560 } as const;
export type ImageVariant = keyof typeof imageVariants;
/** What may be asked for: a PDF has `original` alone, a picture the others. */
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

const service = 'media-upload';
const access = 'user';
const rateLimit = { requests: 600, seconds: 60 };
const params = z.strictObject({ id: idSegment });

export const upload = defineEndpoint({
  name: 'upload',
  method: 'POST',
  path: '/api/upload',
  service,
  access,
  rateLimit: { requests: 120, seconds: 60 },
  // 15 s in the queue and 20 s of processing; both once more when memory was short.
  replyWithinSeconds: 75,
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

export const listMedia = defineEndpoint({
  name: 'listMedia',
  method: 'GET',
  path: '/api/media',
  service,
  access,
  rateLimit,
  summary: 'List your files, newest first.',
  query: z.strictObject(pageQuery),
  responses: { 200: { description: 'A page of files.', schema: page(file) } },
});

export const readMedia = defineEndpoint({
  name: 'readMedia',
  method: 'GET',
  path: '/api/media/:id',
  service,
  access,
  rateLimit,
  summary: 'What is known of one of your files.',
  params,
  responses: { 200: { description: 'The file.', schema: file } },
  errors: ['not_found'],
});

export const deleteMedia = defineEndpoint({
  name: 'deleteMedia',
  method: 'DELETE',
  path: '/api/media/:id',
  service,
  access,
  rateLimit,
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

export const readVariant = defineEndpoint({
  name: 'readVariant',
  method: 'GET',
  path: '/api/media/:id/:variant',
  service,
  access,
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'A variant of one of your pictures, as WebP, or the PDF that you uploaded.',
  params: z.strictObject({ id: idSegment, variant: z.enum(variantNames) }),
  headers: {
    'If-None-Match': 'ETags the client has: 304 when one of them is current.',
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
