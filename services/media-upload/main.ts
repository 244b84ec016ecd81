import { run } from '@content-platform/chassis';
import { mediaUploadConfig } from './config.ts';
import { startMediaUpload } from './start.ts';

await run('media-upload', mediaUploadConfig, startMediaUpload);
