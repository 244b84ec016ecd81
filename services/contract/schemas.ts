import { z } from 'zod';

const isWhole = (value: string): boolean => value.isWellFormed();
const halved = 'Contains half a character.';

/** A string that PostgreSQL and every JSON parser accept: no NUL, no lone surrogate. Lengths in UTF-16 units. */
export function multiLineText(min: number, max: number) {
  return (
    z
      .string()
      .min(min)
      .max(max)
      // oxlint-disable-next-line no-control-regex
      .regex(/^[^\u0000]*$/, 'Contains a NUL.')
      .refine(isWhole, halved)
  );
}

/** A text in a path or a query, where the gateway refuses control characters. */
export function queryText(min: number, max: number) {
  return z
    .string()
    .min(min)
    .max(max)
    .regex(/^[^\p{Cc}]*$/u, 'Contains a control character.')
    .refine(isWhole, halved);
}

/** A text shown on one line: not blank, no invisible characters and none that change the text's direction. */
export function singleLineText(min: number, max: number) {
  return z
    .string()
    .min(min)
    .max(max)
    .regex(/^[^\p{Cc}\u2028-\u202e\u2066-\u2069]*$/u, 'Contains characters that cannot be shown.')
    .regex(/\S/, 'Must not be blank.')
    .refine(isWhole, halved);
}

/** A file name as a path segment. Only the documents hold its pattern: another name is a 404. */
export const fileName = multiLineText(1, 100).meta({ pattern: '^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,99}$' });

/** An id in a body: an integer from 1 to 2^53-1, as a number. */
export const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

/** How the documents describe a number in a path or a query, which zod parses from a string. */
const digits = (minimum: number, maximum: number) => ({
  type: 'integer' as const,
  pattern: undefined,
  minimum,
  maximum,
});

/** An id in a path or a query: digits without sign and leading zero. */
export const idSegment = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/, 'Must be an integer from 1 to 9007199254740991.')
  .meta(digits(1, Number.MAX_SAFE_INTEGER))
  .transform(Number)
  .pipe(id);

/** A time as ISO 8601 in UTC, with milliseconds. */
export const time = z.iso.datetime();

export const models = ['webform', 'pathway', 'accesscode', 'condition'] as const;
export const model = z.enum(models);
export type Model = z.infer<typeof model>;
/** Every record of a model. */
export const modelPattern = z.enum(models.map((name) => `${name}:*` as const));

/** Query parameters of every list, whose items are ordered by descending id. */
export const pageQuery = {
  limit: z
    .string()
    .regex(/^([1-9][0-9]?|100)$/, 'Must be an integer from 1 to 100.')
    .meta({ ...digits(1, 100), default: 50 })
    .transform(Number)
    .default(50)
    .meta({ description: 'Items on a page.' }),
  cursor: idSegment.optional().meta({ description: 'next_cursor of the page before.' }),
};

export function page<T extends z.ZodType>(item: T) {
  return z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() });
}

/** The body of every error reply. */
export const errorEnvelope = z.strictObject({
  error: z.string(),
  code: z.int(),
  message: z.string(),
  request_id: z.string(),
  details: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
});
export type ErrorEnvelope = z.infer<typeof errorEnvelope>;
