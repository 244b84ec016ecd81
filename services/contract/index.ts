export * from './domains.ts';
export * from './endpoint.ts';
export * from './endpoints.ts';
export * from './errors.ts';
export * from './events.ts';
export * from './schemas.ts';
export * from './services.ts';
export * from './targets.ts';
