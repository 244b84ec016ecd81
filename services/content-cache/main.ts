import { run } from '@content-platform/chassis';
import { readContentCacheConfig } from './config.ts';
import { startContentCache } from './start.ts';

await run('content-cache', readContentCacheConfig, startContentCache);
