// Writes src/contract.ts: the types and the table of the client, from the platform's OpenAPI document.
import { errors } from '@content-platform/contract/errors';
import { openapi } from '@content-platform/contract/openapi';

interface Schema {
  type?: string | string[];
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: { required: string[] }[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  contentEncoding?: string;
}
type Content = Record<string, { schema: Schema }>;
interface Parameter {
  name: string;
  in: string;
  required: boolean;
  description?: string;
  schema: Schema;
}
interface Operation {
  operationId: string;
  summary: string;
  security: unknown[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { content?: Content }>;
}

const json = 'application/json';

const comment = (text: string | undefined): string =>
  text ? `/** ${text.replaceAll('*/', '* /')} */\n` : '';

function propertiesOf({ properties = {}, required = [] }: Schema): string[] {
  return Object.entries(properties).map(([name, schema]) =>
    required.includes(name)
      ? `${comment(schema.description)}${name}: ${typeOf(schema)};`
      : `${comment(schema.description)}${name}?: ${typeOf(schema)} | undefined;`,
  );
}

function objectOf(schema: Schema): string {
  const { oneOf, properties = {}, additionalProperties } = schema;
  if (Object.keys(properties).length === 0 && typeof additionalProperties === 'object')
    return `Record<string, ${typeOf(additionalProperties)}>`;
  if (!oneOf) return `{ ${propertiesOf(schema).join('\n')} }`;
  // Exactly one of some properties: a union with one member for each.
  const members = oneOf.map(({ required }) => {
    const others = oneOf.flatMap((other) => other.required).filter((name) => !required.includes(name));
    const kept = Object.entries(properties).filter(([name]) => !others.includes(name));
    const all = [...(schema.required ?? []), ...required];
    return objectOf({ properties: Object.fromEntries(kept), required: all });
  });
  return members.join(' | ');
}

function typeOf(schema: Schema): string {
  const { type, anyOf, items, contentEncoding } = schema;
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one })).join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (anyOf) return anyOf.map((one) => typeOf(one)).join(' | ');
  if (contentEncoding) return 'Blob';
  if (type === 'array') return `Array<${typeOf(items ?? {})}>`;
  if (type === 'object') return objectOf(schema);
  if (type === 'integer') return 'number';
  return type ?? 'unknown';
}

/** Returns the input's schema: path, query and body together. @throws Error if two of them have the same name */
function inputOf({ operationId, parameters, requestBody }: Operation): Schema {
  const fields = parameters.filter((one) => one.in !== 'header');
  const body = requestBody?.content[json] ?? requestBody?.content['multipart/form-data'];
  const { properties = {}, required = [], oneOf } = body?.schema ?? {};
  const inUrl = fields.map(({ name, description, schema }): [string, Schema] => {
    if (name in properties) throw new Error(`${operationId}: ${name} is in the URL and in the body`);
    // A number in a URL is text there, and next_cursor is text in a reply.
    const typed = schema.type === 'integer' ? { anyOf: [{ type: 'number' }, { type: 'string' }] } : schema;
    return [name, { ...typed, ...(description && { description }) }];
  });
  return {
    type: 'object',
    properties: { ...Object.fromEntries(inUrl), ...properties },
    required: [...fields.filter((one) => one.required).map(({ name }) => name), ...required],
    ...(oneOf && { oneOf }),
  };
}

/** Returns the successful response; undefined if the operation redirects a browser. */
function successOf({ responses }: Operation): { content?: Content } | undefined {
  return Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
}

/** Leaves out pages for browsers and endpoints that another server calls. */
function isForApps(operation: Operation): boolean {
  const { content = {} } = operation.requestBody ?? {};
  const success = successOf(operation);
  const isData = success && (!success.content || json in success.content || 'image/webp' in success.content);
  return isData === true && (json in content || !('application/x-www-form-urlencoded' in content));
}

function outputOf(operation: Operation): string {
  const content = successOf(operation)?.content;
  if (!content) return 'undefined';
  return content[json] ? typeOf(content[json].schema) : 'Blob';
}

/** Exported types: the operation whose output has the type, and how to find it there. Default: the whole output. */
const named: Record<string, [operation: string, select?: (schema: Schema) => Schema | undefined]> = {
  ContentRecord: ['readContent', ({ anyOf }) => anyOf?.[0]],
  ContentSummary: ['readContent', ({ anyOf }) => anyOf?.[1]],
  Change: ['listChanges', itemOf],
  Profile: ['me'],
  Login: ['login'],
  Session: ['listSessions', itemOf],
  Letter: ['readLetter'],
  Device: ['listDevices', itemOf],
  MediaFile: ['readMedia'],
  Account: ['createUser'],
  FailedJob: ['readFailedJob'],
  // Last: types above contain them, and `shorten` finds those only before it shortens what they contain.
  Model: ['readContent', ({ anyOf }) => anyOf?.[0]?.properties?.['model']],
  FailedJobClass: ['readFailedJob', ({ properties }) => properties?.['class']],
};

function itemOf({ properties }: Schema): Schema | undefined {
  return properties?.['items']?.items;
}

function flagsOf(operation: Operation): string {
  const schema = operation.requestBody?.content[json]?.schema;
  const { security, parameters, requestBody } = operation;
  const flags = {
    public: security.length === 0,
    key: parameters.some(({ name }) => name === 'Idempotency-Key'),
    form: requestBody?.content['multipart/form-data'] !== undefined,
    blob: outputOf(operation) === 'Blob',
    body: requestBody?.required === true && schema !== undefined && !schema.required && !schema.oneOf,
  };
  const set = Object.entries(flags).filter(([, value]) => value);
  return set.map(([name]) => `, ${name}: true`).join('');
}

/** Returns the text of src/contract.ts. */
export function clientContract(): string {
  const paths = openapi('http://localhost')['paths'] as Record<string, Record<string, Operation>>;
  const all = Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )
    .filter(({ operation }) => isForApps(operation));
  const schemaOf = (name: string): Schema =>
    successOf(all.find(({ operation }) => operation.operationId === name)!.operation)!.content![json]!.schema;
  const names = Object.entries(named).map(([name, [operation, select = (schema: Schema) => schema]]) => ({
    name,
    text: typeOf(select(schemaOf(operation)) ?? {}),
  }));
  const shorten = (text: string, except?: string): string =>
    names.reduce((short, one) => (one.name === except ? short : short.replaceAll(one.text, one.name)), text);
  const declarations = names.map(({ name, text }) => `export type ${name} = ${shorten(text, name)};`);
  const types = all.map(
    ({ operation }) =>
      `${comment(operation.summary)}${operation.operationId}: { input: ${shorten(typeOf(inputOf(operation)))}; output: ${shorten(outputOf(operation))} };`,
  );
  const table = all.map(
    ({ path, method, operation }) =>
      `${operation.operationId}: { method: '${method.toUpperCase()}', path: '${path}'${flagsOf(operation)} },`,
  );
  const codes = Object.keys(errors).map((code) => `| '${code}'`);
  return `// Generated by clients/typescript/render/contract.ts; do not edit.

/** Codes of the errors that the platform returns. */
export type ErrorCode = ${codes.join(' ')};

${declarations.join('\n\n')}

/** Input and output of every operation. The input has the parameters of the path and the query, and the body. */
export interface Operations {
${types.join('\n')}
}

/** Where and how to send an operation. */
export interface Operation {
  method: string;
  path: string;
  /** Needs no access token. */
  public?: true;
  /** Accepts an Idempotency-Key. */
  key?: true;
  /** The body is a multipart form. */
  form?: true;
  /** The reply is a file. */
  blob?: true;
  /** Needs a JSON body, also without any field. */
  body?: true;
}

export const operations: Record<keyof Operations, Operation> = {
${table.join('\n')}
};
`;
}
