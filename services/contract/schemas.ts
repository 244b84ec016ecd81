import { z } from 'zod';

/** A string that matches `pattern`, without lone surrogates. Lengths in code points: an emoji of one code point counts as 1. */
function textMatching(min: number, max: number, pattern: RegExp, problem: string) {
  return z
    .string()
    .min(min)
    .max(max)
    .regex(pattern, problem)
    .refine((value) => value.isWellFormed(), 'Contains half a character.');
}

/** A string without NUL and lone surrogates, so that PostgreSQL and every JSON parser accept it. */
export function multiLineText(min: number, max: number) {
  // oxlint-disable-next-line no-control-regex
  return textMatching(min, max, /^[^\u0000]*$/, 'Contains a NUL.');
}

/** A string in a path or query without control characters. The gateway refuses most of them there. */
export function queryText(min: number, max: number) {
  return textMatching(min, max, /^[^\p{Cc}]*$/u, 'Contains a control character.');
}

/** A string for display on one line: not blank, without control characters and without bidirectional overrides. */
export function singleLineText(min: number, max: number) {
  const shown = /^[^\p{Cc}\u2028-\u202e\u2066-\u2069]*$/u;
  const problem = 'Contains characters that cannot be shown.';
  return textMatching(min, max, shown, problem).regex(/[^\s\p{Cf}]/u, 'Must not be blank.');
}

/** A file name as a path segment. The pattern is documentation only: a name that does not match gets 404, not 422. */
export const fileName = multiLineText(1, 100).meta({ pattern: '^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,99}$' });

/** A public key (RFC 7517). */
export const publicKey = z.object({
  kty: z.literal('RSA'),
  use: z.literal('sig'),
  alg: z.literal('RS256'),
  kid: z.string(),
  n: z.string(),
  e: z.string(),
});

/** An ID in a body: an integer from 1 to 2^53-1. */
export const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

/** Documents a path or query parameter as an integer, although zod parses it from a string. */
const digits = (minimum: number, maximum: number) => ({
  type: 'integer' as const,
  pattern: undefined,
  minimum,
  maximum,
});

/** An ID in a path or query: decimal digits without sign and leading zeros. */
export const idSegment = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/, 'Must be an integer from 1 to 9007199254740991.')
  .meta(digits(1, Number.MAX_SAFE_INTEGER))
  .transform(Number)
  .pipe(id);

export const idParams = z.strictObject({ id: idSegment });

/** An ISO 8601 time in UTC, for example 2026-01-31T09:30:00.000Z. */
export const time = z.iso.datetime();

/** A time in a filter that PostgreSQL accepts: year 1 or later, at most 40 characters. */
export const since = time.max(40, 'Has too many digits.').regex(/^(?!0000)/, 'The year must be 1 or later.');

/** A code of an authenticator app (RFC 6238). */
export const totpCode = z.string().regex(/^\d{6}$/, 'Must be 6 digits.');

export const models = ['webform', 'pathway', 'accesscode', 'condition'] as const;
export const model = z.enum(models);
export type Model = z.infer<typeof model>;
export const modelPattern = z.enum(models.map((name) => `${name}:*` as const));

/** The limit of a page: an integer from 1 to `max`, which must be a power of ten. Does not apply the default. */
export function pageLimit(max: number, documentedDefault: number) {
  return z
    .string()
    .regex(
      new RegExp(`^([1-9][0-9]{0,${Math.log10(max) - 1}}|${max})$`),
      `Must be an integer from 1 to ${max}.`,
    )
    .meta({ ...digits(1, max), default: documentedDefault, description: 'Maximum number of items per page.' })
    .transform(Number);
}

/** Query parameters of every list whose cursor is an id. */
export const pageQuery = {
  limit: pageLimit(100, 50).default(50),
  cursor: idSegment.optional().describe('Value of `next_cursor` in the previous page.'),
};

/** A cursor with a content that only the service knows. */
export const opaqueCursor = z
  .string()
  .regex(/^[\w-]{1,4096}$/, 'Must be the value of `next_cursor` in a reply.');

export function page<T extends z.ZodType>(item: T) {
  return z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() });
}

export const errorEnvelope = z.strictObject({
  error: z.string(),
  code: z.int(),
  message: z.string(),
  request_id: z.string(),
  details: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
});
export type ErrorEnvelope = z.infer<typeof errorEnvelope>;

/** Returns the schema of an object with exactly one field of `choice`, beside those of `common`. */
export function eitherOf<Common extends z.ZodRawShape, Choice extends Record<string, z.ZodType>>(
  common: Common,
  choice: Choice,
) {
  const names = Object.keys(choice);
  const optional = z.object(choice).partial().shape;
  return z
    .strictObject({ ...common, ...optional })
    .refine(
      (value) => names.filter((name) => (value as Record<string, unknown>)[name] !== undefined).length === 1,
      { message: `Send either ${names.join(' or ')}.` },
    )
    .meta({ oneOf: names.map((name) => ({ required: [name] })) });
}
