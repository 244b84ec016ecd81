import { z } from 'zod';
import type { Logger } from './logger.ts';
import type { Database } from './postgres.ts';
import { fetchFeedFrom, type FetchPage, followFeed, repeat } from './repeat.ts';
import type { ServiceFetch } from './service-tokens.ts';

const deletedUser = z.object({ position: z.int(), id: z.int(), deleted_at: z.iso.datetime() });

/** A user whom auth has deleted. */
export type DeletedUser = Omit<z.infer<typeof deletedUser>, 'position'>;

const page = z
  .object({ users: z.array(deletedUser), last: z.int() })
  .transform(({ users, last }) => ({ entries: users, last }));

/** Fetches deleted users from auth's internal listener at `url`. Rejects if auth is unavailable. */
export const fetchDeletedUsersFrom = (url: string, fetchAsService: ServiceFetch): FetchPage<DeletedUser> =>
  fetchFeedFrom(`${url}/deleted-users`, page, fetchAsService);

export interface ErasureOptions {
  /** Deletes all data of `users`, whose ids are `ids`. Must be repeatable: it is called several times for each user. */
  erase(ids: number[], users: readonly DeletedUser[]): Promise<void>;
  /** Runs statements in the database with the table `<schema>.deleted_user_position`. */
  query: Database['query'];
  schema: string;
}

/** Erasing is repeated, as requests may store data after the deletion: tokens last 15 min, the longest request 75 s. */
const usual = { readEveryMs: 5_000, repeatEveryMs: 20_000, repeatForMs: 20 * 60_000 };
const maxUsers = 1_000;

/**
 * Erases users within about 5 s after their deletion, and retries, until the returned function is called. Stores the
 * position once `erase` need not be repeated, so that no crash loses a repetition.
 */
export function followDeletedUsers(
  fetchPage: FetchPage<DeletedUser>,
  { erase, query, schema }: ErasureOptions,
  logger: Logger,
  { readEveryMs, repeatEveryMs, repeatForMs } = usual,
): () => Promise<unknown> {
  const failure = 'data of deleted users was not erased; it stays until a retry succeeds';
  /** The users whose erasure is repeated `until` a performance.now() time, by pages of the feed. */
  let recent: { users: readonly DeletedUser[]; position: number; until: number }[] = [];
  /** The position up to which users were erased once. It is stored when their repetitions have ended. */
  let reached: number | undefined;

  const eraseAll = (users: readonly DeletedUser[]) =>
    erase(
      users.map(({ id }) => id),
      users,
    );

  async function storedPosition(): Promise<number> {
    const text = `SELECT after::float8 AS after FROM ${schema}.deleted_user_position`;
    return (await query<{ after: number }>('read_erasure_position', text)).rows[0]!.after;
  }

  async function eraseAgain(): Promise<void> {
    const now = performance.now();
    const pages = recent;
    // After a restore a user can be deleted again, and a statement must not get an id twice.
    const users = [...new Map(pages.flatMap((each) => each.users.map((user) => [user.id, user]))).values()];
    for (let first = 0; first < users.length; first += maxUsers)
      await eraseAll(users.slice(first, first + maxUsers));
    const done = pages.filter(({ until }) => until < now);
    if (done.length === 0) return;
    const text = `UPDATE ${schema}.deleted_user_position SET after = $1`;
    await query('store_erasure_position', text, [done.at(-1)!.position]);
    recent = recent.filter((each) => !done.includes(each));
  }

  const stopReading = followFeed({
    fetchPage,
    position: async () => (reached ??= await storedPosition()),
    async apply(users, position) {
      await eraseAll(users);
      recent = [...recent, { users, position, until: performance.now() + repeatForMs }];
      reached = position;
    },
    failure,
    logger,
    everyMs: readEveryMs,
  });
  const stopRepeating = repeat(eraseAgain, { everyMs: repeatEveryMs, logger, failure });
  return () => Promise.all([stopReading(), stopRepeating()]);
}
