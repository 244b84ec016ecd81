import {
  cacheInvalidation,
  modelChanged,
  models,
  recordChanged,
  type FailedJobClass,
  type Model,
} from '@content-platform/contract';
import type { Target } from '../invalidator.ts';

/** The failed job of an event that can never be processed. */
export interface Unprocessable {
  class: FailedJobClass;
  error: string;
  /** The model that the event names, if it is known. */
  model: Model | null;
}

export interface Announcement {
  target: Target;
  /** When the change was committed, in ms since 1970, if the event says so. */
  occurredAt: number | undefined;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function fail(name: FailedJobClass, error: string, model: Model | null = null): Unprocessable {
  return { class: name, error, model };
}

function interpret(event: object): Announcement | Unprocessable {
  const { model, pattern } = event as { model?: unknown; pattern?: unknown };
  const named = model ?? (typeof pattern === 'string' ? /^(.+):\*$/.exec(pattern)?.[1] : undefined);
  const known = models.find((one) => one === named) ?? null;
  if (typeof named === 'string' && !known)
    return fail('unknown_model', `Unknown model; allowed: ${models.join(', ')}.`);
  const isPattern = (model ?? null) === null && pattern !== undefined;
  const { data, error } = (isPattern ? modelChanged : recordChanged).safeParse(event);
  if (error) {
    const [issue] = error.issues;
    return fail('invalid_event', `${issue?.path.join('.') || 'event'}: ${issue?.message}`, known);
  }
  return {
    target: { model: known!, id: 'id' in data ? data.id : null },
    occurredAt: data.occurred_at === undefined ? undefined : Date.parse(data.occurred_at),
  };
}

/** Parses a message of the topic. Never throws. */
export function parseEvent(value: Buffer | null): Announcement | Unprocessable {
  if (value === null || value.length === 0) return fail('empty', 'The message has no value.');
  const { maxBytes } = cacheInvalidation;
  if (value.length > maxBytes)
    return fail('too_large', `The value has ${value.length} bytes; ${maxBytes} are allowed.`);
  let event: unknown;
  try {
    event = JSON.parse(utf8.decode(value));
  } catch (error) {
    return fail('not_json', (error as Error).message);
  }
  if (typeof event !== 'object' || event === null || Array.isArray(event)) {
    return fail('invalid_event', 'The value is not a JSON object.');
  }
  return interpret(event);
}
