import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import * as contract from '@content-platform/contract';
import { deleteMedia, listMedia, readMedia } from './endpoints/media.ts';
import { readVariant } from './endpoints/read-variant.ts';
import { upload, type UploadDeps } from './endpoints/upload.ts';

export function createMediaUpload(deps: UploadDeps & Omit<ServiceOptions, 'name'>) {
  return createService({ ...deps, name: 'media-upload' }, [
    handle(contract.upload, upload(deps)),
    handle(contract.listMedia, listMedia(deps)),
    handle(contract.readMedia, readMedia(deps)),
    handle(contract.deleteMedia, deleteMedia(deps)),
    handle(contract.readVariant, readVariant(deps)),
  ]);
}
