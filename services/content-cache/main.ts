import { run } from '@content-platform/chassis';
import { contentCacheConfig } from './config.ts';
import { startContentCache } from './start.ts';

await run('content-cache', contentCacheConfig, startContentCache);
