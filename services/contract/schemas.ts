import { z } from 'zod';

/** A string that PostgreSQL and every JSON reader take: no NUL, no lone surrogate. Lengths in UTF-16 units. */
export function text(min: number, max: number) {
  return z
    .string()
    .min(min)
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'Contains a NUL or half a character.');
}

/** A text that is shown on one line: nothing that cannot be seen there or turns its direction, and not blank. */
export function line(min: number, max: number) {
  return text(min, max)
    .regex(/^[^\p{Cc}\u2028-\u202e\u2066-\u2069]*$/u, 'Contains characters that cannot be shown.')
    .refine((value) => value.trim() !== '', 'Must not be blank.');
}

/** An id in a body: an integer from 1 to 2^53-1, as a number. */
export const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);

/** The same id as a path segment: plain digits, no sign, no leading zero. */
export const idSegment = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/, 'Must be an integer from 1 to 9007199254740991.')
  .transform(Number)
  .pipe(id);

/** A time as ISO 8601 in UTC, with milliseconds. */
export const time = z.iso.datetime();

export const models = ['webform', 'pathway', 'accesscode', 'condition'] as const;
export const model = z.enum(models);
export type Model = z.infer<typeof model>;

/** Query parameters of every list. */
export const pageQuery = {
  limit: z
    .string()
    .regex(/^([1-9][0-9]?|100)$/, 'Must be an integer from 1 to 100.')
    .transform(Number)
    .default(50)
    .meta({ description: 'Items on a page, 1 to 100.' }),
  // The id of the last item on the page before: what comes next has smaller ones.
  cursor: idSegment.optional().meta({ description: 'next_cursor of the page before.' }),
};

export function page<T extends z.ZodType>(item: T) {
  return z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() });
}

/** The one shape of every error reply. */
export const errorEnvelope = z.strictObject({
  error: z.string(),
  code: z.int(),
  message: z.string(),
  request_id: z.string(),
  details: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
});
export type ErrorEnvelope = z.infer<typeof errorEnvelope>;
