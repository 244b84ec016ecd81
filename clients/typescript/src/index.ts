export type * from './contract.ts';
export { type Client, type ClientOptions, createClient } from './client.ts';
export { type ClientErrorCode, type ErrorDetail, PlatformError } from './errors.ts';
export type { FollowOptions, FollowStep } from './follow.ts';
export type { ListName } from './pages.ts';
export type { CallOptions, OperationName, Reply } from './send.ts';
export type { TokenStorage } from './session.ts';
