// Registry of the contract: the platform serves every endpoint that these files export.
export * from './accounts.ts';
export * from './auth.ts';
export * from './cache-admin.ts';
export * from './content.ts';
export * from './devices.ts';
export * from './failed-jobs.ts';
export * from './identity.ts';
export * from './letters.ts';
export * from './media.ts';
export * from './mfa.ts';
export * from './personal-data.ts';
export * from './platform.ts';
export * from './pulse.ts';
export * from './users.ts';
