import type { ErrorCode, ImageVariant } from '@content-platform/contract';

/** A job for a worker process; it contains paths, not pixels. */
export interface Job {
  /** The upload. */
  path: string;
  /** The folder to write the variants to. */
  folder: string;
  /** Maximum side of each variant, in pixels. Importing it from the contract would take a third of a worker's memory. */
  sides: Readonly<Record<ImageVariant, number>>;
}

/** The reasons to refuse a file. */
export type Refusal = Extract<
  ErrorCode,
  'unsupported_media_type' | 'animated_image' | 'image_too_large' | 'image_too_costly' | 'unreadable_file'
>;

export interface CreatedVariant {
  /** Also the name of its file in the job's folder. */
  name: ImageVariant;
  width: number;
  height: number;
  bytes: number;
}

export interface ProcessedImage {
  kind: 'image';
  mime: string;
  /** Pixels of the upright image. */
  width: number;
  height: number;
  /** ThumbHash in base64. */
  placeholder: string;
  variants: CreatedVariant[];
}

export type Outcome =
  | ProcessedImage
  | { kind: 'pdf'; mime: string }
  | { kind: 'refused'; refusal: Refusal }
  /** An error that the file did not cause. */
  | { kind: 'failed'; message: string };
