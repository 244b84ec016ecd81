import { run } from '@content-platform/chassis';
import { readMediaUploadConfig } from './config.ts';
import { startMediaUpload } from './start.ts';

await run('media-upload', readMediaUploadConfig, startMediaUpload);
