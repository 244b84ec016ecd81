import { z } from 'zod';
import { endpointsWith, idempotencyErrors, idempotencyHeader, ifNoneMatch, notModified } from './endpoint.ts';
import { id, idParams, idSegment, page, pageQuery, time } from './schemas.ts';

export const maxUploadBytes = 10 * 1024 * 1024;
/** Maximum size of the other parts of the multipart form in bytes. */
const formBytes = 16 * 1024;

/** Longest side of each image variant in pixels. Smaller images keep their size. */
export const imageVariants = { thumb: 320, medium: 1280, large: 2560 } as const;
export type ImageVariant = keyof typeof imageVariants;
/** Variant names. A PDF has only `original`; an image has the other variants. */
export const variantNames = ['thumb', 'medium', 'large', 'original'] as const;
export type VariantName = (typeof variantNames)[number];

const pixels = z.int().min(1).nullable().describe('Size in pixels; null for a PDF.');

const file = z.strictObject({
  id,
  mime: z.string().describe('Media type, detected from the bytes of the file.'),
  bytes: z.int().describe('Size of the upload in bytes.'),
  width: pixels,
  height: pixels,
  checksum: z.string().describe('SHA-256 of the upload in hexadecimal.'),
  placeholder: z.string().nullable().describe('Preview as a ThumbHash in base64; null for a PDF.'),
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

const define = endpointsWith({ service: 'media-upload', access: 'user' });

export const upload = define('upload', 'POST', '/api/upload', {
  rateLimit: { requests: 120, seconds: 60 },
  // 15 s in the queue and 20 s of processing, both twice if the first attempt runs out of memory.
  replyWithinSeconds: 75,
  latencyClass: 'upload',
  summary: 'Upload an image or a PDF.',
  description:
    'Accepts JPEG, PNG, WebP, AVIF, GIF without animation, and PDF files of up to 10 MB. Images may have up to 24 megapixels.',
  headers: idempotencyHeader,
  body: {
    kinds: ['multipart'],
    maxBytes: maxUploadBytes + formBytes,
    schema: z.strictObject({ file: z.file() }),
  },
  responses: {
    200: { description: 'The user has already uploaded this file; returns the existing file.', schema: file },
    201: { description: 'The new file with its variants.', schema: file },
  },
  errors: [
    ...idempotencyErrors,
    'malformed_request',
    'quota_exceeded',
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
  summary: 'Read the metadata of one of your files.',
  params: idParams,
  responses: { 200: { description: 'The metadata of the file.', schema: file } },
  errors: ['not_found'],
});

export const deleteMedia = define('deleteMedia', 'DELETE', '/api/media/:id', {
  summary: 'Delete one of your files.',
  description: 'Deletes the file and all its variants.',
  params: idParams,
  responses: { 204: { description: 'File deleted.' } },
  errors: ['not_found'],
});

const fileTypes = ['image/webp', 'application/pdf'] as const;
const fileHeaders = {
  ETag: 'Identifies the content, which never changes.',
  'Cache-Control': 'private, max-age=31536000, immutable',
  'Content-Disposition': '`inline` for images, `attachment` for PDFs, with the uploaded file name.',
};

export const readVariant = define('readVariant', 'GET', '/api/media/:id/:variant', {
  rateLimit: { requests: 6000, seconds: 60 },
  summary: 'Download a variant of one of your files.',
  description: 'Image variants are WebP. A PDF has the variant `original`.',
  params: z.strictObject({ id: idSegment, variant: z.enum(variantNames) }),
  headers: {
    ...ifNoneMatch,
    Range: 'One byte range, for example bytes=0-99. The response is 206.',
    'If-Range': 'ETag that the range refers to. If it is not current, the response is the whole file.',
  },
  responses: {
    200: { description: 'The file.', contentType: fileTypes, headers: fileHeaders },
    206: {
      description: 'The requested byte range of the file.',
      contentType: fileTypes,
      headers: { ...fileHeaders, 'Content-Range': 'Byte range, for example bytes 0-99/1234.' },
    },
    ...notModified,
  },
  errors: ['not_found', 'range_not_satisfiable'],
});
