import { run } from '@content-platform/chassis';
import { authConfig } from './config.ts';
import { startAuthService } from './start.ts';

await run('auth', authConfig, startAuthService);
