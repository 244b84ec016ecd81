import type { ErrorCode, ImageVariant } from '@content-platform/contract';

/** What goes to a child: paths, never pixels. */
export interface Job {
  /** The upload. */
  path: string;
  /** Where the variants are to be written. */
  folder: string;
  /** Longest side of each variant in pixels. It comes along as the contract would be a third of a child's memory. */
  sides: Readonly<Record<ImageVariant, number>>;
}

/** Why a file is not taken. */
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
  /** As it is seen, upright. */
  width: number;
  height: number;
  /** ThumbHash in base64. */
  placeholder: string;
  variants: MadeVariant[];
}

/** What comes back. */
export type Outcome =
  | Picture
  | { kind: 'pdf'; mime: string }
  | { kind: 'refused'; refusal: Refusal }
  /** Not the file's fault. */
  | { kind: 'failed'; message: string };
