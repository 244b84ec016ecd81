import {
  createService,
  handle,
  type Logger,
  type Metrics,
  type TokenVerifier,
} from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { deleteMedia } from './endpoints/delete-media.ts';
import { listMedia } from './endpoints/list-media.ts';
import { readMedia } from './endpoints/read-media.ts';
import { readVariant } from './endpoints/read-variant.ts';
import { upload, type UploadDeps } from './endpoints/upload.ts';

interface MediaUploadDeps extends UploadDeps {
  tokens: TokenVerifier;
  logger: Logger;
  metrics: Metrics;
}

export function createMediaUpload(deps: MediaUploadDeps) {
  const { tokens, logger, metrics } = deps;
  return createService({ name: 'media-upload', logger, metrics, tokens }, [
    handle(contract.upload, upload(deps)),
    handle(contract.listMedia, listMedia(deps)),
    handle(contract.readMedia, readMedia(deps)),
    handle(contract.deleteMedia, deleteMedia(deps)),
    handle(contract.readVariant, readVariant(deps)),
  ]);
}
