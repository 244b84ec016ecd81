import type { z } from 'zod';
import {
  cacheInvalidation,
  modelChanged,
  models,
  recordChanged,
  type FailedJobClass,
  type Model,
} from '@content-platform/contract';
import type { Target } from '../target.ts';

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

export type ParsedEvent = { ok: true; event: Announcement } | { ok: false; failure: Unprocessable };

const utf8 = new TextDecoder('utf-8', { fatal: true });

function fail(name: FailedJobClass, error: string, model: Model | null = null): ParsedEvent {
  return { ok: false, failure: { class: name, error, model } };
}

function knownModel(value: unknown): Model | null {
  return models.find((model) => model === value) ?? null;
}

function firstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  return `${issue?.path.join('.') || 'event'}: ${issue?.message}`;
}

function interpret(event: object): ParsedEvent {
  const { model, pattern } = event as { model?: unknown; pattern?: unknown };
  const named = model ?? (typeof pattern === 'string' ? /^(.+):\*$/.exec(pattern)?.[1] : undefined);
  const known = knownModel(named);
  if (typeof named === 'string' && !known) return fail('unknown_model', 'The model is not one of ours.');
  if (model === undefined && pattern !== undefined) {
    const result = modelChanged.safeParse(event);
    if (!result.success) return fail('invalid_event', firstIssue(result.error), known);
    return parsed({ model: known!, id: null }, result.data.occurred_at);
  }
  const result = recordChanged.safeParse(event);
  if (!result.success) return fail('invalid_event', firstIssue(result.error), known);
  return parsed({ model: result.data.model, id: result.data.id }, result.data.occurred_at);
}

function parsed(target: Target, occurredAt: string | undefined): ParsedEvent {
  return {
    ok: true,
    event: { target, occurredAt: occurredAt === undefined ? undefined : Date.parse(occurredAt) },
  };
}

/** Parses a message of the topic: an event, or a failed job. Never throws. */
export function parseEvent(value: Buffer | null): ParsedEvent {
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
