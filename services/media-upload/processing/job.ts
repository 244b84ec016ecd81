import type { ErrorCode, ImageVariant } from '@content-platform/contract';

/** What is sent to a worker process: paths, never pixels. */
export interface Job {
  /** The upload. */
  path: string;
  /** Where the variants are to be written. */
  folder: string;
  /** The longest side of each variant, in pixels. Importing the contract would take a third of a worker's memory. */
  sides: Readonly<Record<ImageVariant, number>>;
}

/** Why a file is refused. */
export type Refusal = Extract<
  ErrorCode,
  'unsupported_media_type' | 'animated_image' | 'image_too_large' | 'image_too_costly' | 'unreadable_file'
>;

export interface MadeVariant {
  name: ImageVariant;
  path: string;
  width: number;
  height: number;
  bytes: number;
}

export interface Picture {
  kind: 'picture';
  mime: string;
  /** Of the upright image. */
  width: number;
  height: number;
  /** ThumbHash in base64. */
  placeholder: string;
  variants: MadeVariant[];
}

/** The result of a job. */
export type Outcome =
  | Picture
  | { kind: 'pdf'; mime: string }
  | { kind: 'refused'; refusal: Refusal }
  /** The file is not at fault. */
  | { kind: 'failed'; message: string };
