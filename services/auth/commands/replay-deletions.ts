import { parseArgs } from 'node:util';
import { migrateLogs, openDatabase } from '@content-platform/chassis';
import type { Accounts } from '../accounts.ts';
import { byCommand, eraseUser } from '../administration.ts';
import { readLogsDatabaseUrl } from '../config.ts';
import type { Command } from './command.ts';

type LoggedUser = { id: number; deletedAt: Date };

async function readDeletedUsers(url: string): Promise<LoggedUser[]> {
  const logs = await openDatabase('auth', url, (logger) => migrateLogs(url, logger));
  const text =
    'SELECT id::float8 AS id, deleted_at AS "deletedAt" FROM logs.deleted_user ORDER BY deleted_user.id';
  const read = logs.query<LoggedUser>('read_logged_users', text);
  return (await read.finally(logs.close)).rows;
}

/** Deletes the user again. A user who was created after the deletion is another person, who got the same id. */
function deleteAgain({ transaction }: Accounts, { id, deletedAt }: LoggedUser) {
  return transaction(async (stores) => {
    const user = await stores.users.lock(id);
    if (user && user.createdAt > deletedAt) return 'other person' as const;
    if (!user && (await stores.deletedUsers.has(id))) return 'deleted before' as const;
    if (user) await eraseUser(stores, id, byCommand);
    else await stores.deletedUsers.add(id);
    return 'deleted' as const;
  });
}

/** Runs `replay-deletions`: deletes the users of logs.deleted_user again, after a backup with them was restored. */
export const replayDeletions: Command = async (args, { withAccounts }) => {
  parseArgs({ args });
  const logged = await readDeletedUsers(readLogsDatabaseUrl());
  return withAccounts(async (accounts) => {
    const last = logged.at(-1);
    if (last) await accounts.deletedUsers.reserveIds(last.id);
    const counts = { deleted: 0, 'deleted before': 0, 'other person': 0 };
    for (const user of logged) counts[await deleteAgain(accounts, user)] += 1;
    const skipped = counts['other person'];
    return [
      `Deleted ${counts.deleted} of ${logged.length} users again; ${counts['deleted before']} were deleted already.`,
      ...(skipped ? [`Skipped ${skipped}: their ids belong to users who were created later.`] : []),
      ...(counts.deleted ? ['The services erase their data within a minute.'] : []),
    ].join('\n');
  });
};
