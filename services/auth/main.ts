import { run } from '@content-platform/chassis';
import { readAuthConfig } from './config.ts';
import { startAuthService } from './start.ts';

await run('auth', readAuthConfig, startAuthService);
