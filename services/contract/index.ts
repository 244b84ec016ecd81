export * from './accounts.ts';
export * from './auth.ts';
export * from './cache-admin.ts';
export * from './content.ts';
export * from './devices.ts';
export * from './failed-jobs.ts';
export * from './identity.ts';
export * from './letters.ts';
export * from './media.ts';
export * from './platform.ts';
export * from './pulse.ts';
export * from './users.ts';
export * from './endpoints.ts';
export * from './errors.ts';
export * from './events.ts';
export {
  id,
  idSegment,
  text,
  line,
  time,
  model,
  models,
  errorEnvelope,
  type Model,
  type ErrorEnvelope,
} from './schemas.ts';
export {
  defineEndpoint,
  mediaTypes,
  scopes,
  type Access,
  type Body,
  type BodyInput,
  type Endpoint,
  type Method,
  type Params,
  type Query,
  type RateLimit,
  type Reply,
  type RequestBody,
  type Scope,
  type ServiceName,
} from './endpoint.ts';
