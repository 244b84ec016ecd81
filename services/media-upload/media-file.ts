import { HttpError } from '@content-platform/chassis';
import { type MediaFile, type VariantName, variantNames } from '@content-platform/contract';
import type { File, NewFile } from './file-store.ts';

/** Converts a file to its form in replies. */
export function mediaFile(publicUrl: string, file: File): MediaFile {
  const { id, mime, bytes, width, height, checksum, placeholder, createdAt, variants } = file;
  return {
    id,
    mime,
    bytes,
    width,
    height,
    checksum: checksum.toString('hex'),
    placeholder,
    created_at: createdAt.toISOString(),
    variants: variants.map((variant) => ({
      ...variant,
      url: `${publicUrl}/api/media/${id}/${variant.name}`,
    })),
  };
}

export const keyOf = (object: string, name: VariantName): string => `${object}-${name}`;

/** Returns the names of the upload itself and of its variants. */
export function namesOf({ variants }: Pick<NewFile, 'variants'>): VariantName[] {
  return [...new Set<VariantName>(['original', ...variants.map(({ name }) => name)])];
}

/** Returns the store keys of the upload itself and of its variants. */
export const keysOf = (file: Pick<NewFile, 'object' | 'variants'>): string[] =>
  namesOf(file).map((name) => keyOf(file.object, name));

/** Returns the store keys that any file may have. */
export const allKeysOf = (object: string): string[] => variantNames.map((name) => keyOf(object, name));

/** Returns 404, for another user's file and for a file that does not exist. */
export function fileNotFound(): HttpError<'not_found'> {
  return new HttpError('not_found', 'File not found among your files.');
}
