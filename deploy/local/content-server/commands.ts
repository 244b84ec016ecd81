import { parseArgs } from 'node:util';
import { models, type Model } from '@content-platform/contract';
import { Problem } from '../problem.ts';

const actions = ['edit', 'create', 'delete', 'cleared'] as const;
/** The platform clears at most this many records in one call. */
const maxIds = 1_000;
type Action = (typeof actions)[number];

export interface Command {
  action: Action;
  model: Model | undefined;
  /** Different ids; several for edit only. */
  ids: number[];
  title: string | undefined;
  /** How the change is announced; sql: not at all. */
  via: 'http' | 'kafka' | 'sql';
  /** Steady traffic: changes per second, and duration in seconds. */
  traffic: { rate: number; seconds: number } | undefined;
}

export const USAGE = `npm run content-server -- <command> [--via http|kafka|sql]
  edit <model> <id>[,<id>…] [--title T]    up to ${maxIds} records, announced in one call
  create <model> [<id>] [--title T]
  delete <model> <id>
  cleared <model> <id>                     shows the newest cache clears of a record
  [edit [<model>] [<id>]] --rate N --seconds S    N edits a second; of any demo records unless they are named
Models: ${models.join(', ')}`;

/** @throws Problem for invalid arguments */
export function parseCommand(args: string[]): Command {
  const { values, positionals } = parse(args);
  // Steady traffic consists of edits, so the command name is optional.
  const [action = values.rate === undefined ? undefined : 'edit', model, id, ...rest] = positionals;
  const wrong = (what: string): Problem => new Problem(what, USAGE.split('\n'));
  if (!isOneOf(actions, action))
    throw wrong(
      `The command must be edit, create, delete or cleared${action === undefined ? '' : `, not ${action}`}.`,
    );
  if (model !== undefined && !isOneOf(models, model)) throw wrong(`There is no model ${model}.`);
  if (rest.length > 0) throw wrong(`Too many arguments: ${rest.join(' ')}.`);
  const { via = 'http' } = values;
  if (!isOneOf(['http', 'kafka', 'sql'] as const, via))
    throw wrong(`--via must be http, kafka or sql, not ${via}.`);

  const number = (name: string, text: string | undefined): number | undefined => {
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < 1 || !Number.isSafeInteger(value))
      throw wrong(`${name} is ${text}: a whole number from 1 to ${Number.MAX_SAFE_INTEGER}.`);
    return value;
  };
  const [rate, seconds] = [number('--rate', values.rate), number('--seconds', values.seconds)];
  if ((rate === undefined) !== (seconds === undefined)) throw wrong('--rate and --seconds go together.');
  const traffic = rate === undefined || seconds === undefined ? undefined : { rate, seconds };
  if (traffic && action !== 'edit') throw wrong('--rate is for edit.');
  const ids = [...new Set(id?.split(',').map((one) => number('The id', one)!))];
  if (ids.length > maxIds) throw wrong(`${ids.length} ids: at most ${maxIds}.`);
  if (ids.length > 1 && (action !== 'edit' || traffic))
    throw wrong('Only edit takes several ids, without --rate.');
  if (!traffic && (!model || (ids.length === 0 && action !== 'create')))
    throw wrong(`${action} needs a model${action === 'create' ? '' : ' and an id'}.`);
  return { action, model, ids, title: values.title, via, traffic };
}

function parse(args: string[]) {
  const text = { type: 'string' } as const;
  const options = { title: text, via: text, rate: text, seconds: text };
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new Problem((error as Error).message, USAGE.split('\n'));
  }
}

function isOneOf<T extends string>(list: readonly T[], value: string | undefined): value is T {
  return list.some((one) => one === value);
}
