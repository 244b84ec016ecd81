export * from './domains.ts';
export * from './services.ts';
export * from './targets.ts';
export * from './endpoints.ts';
export * from './errors.ts';
export * from './events.ts';
export {
  id,
  idSegment,
  multiLineText,
  singleLineText,
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
} from './endpoint.ts';
