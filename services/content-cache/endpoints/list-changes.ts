import type { Handler } from '@content-platform/chassis';
import type { listChanges as contract } from '@content-platform/contract';
import { expired, feedCursor, type ChangeFeed } from '../changes/change-feed.ts';
import { decodeCursor, encodeCursor, invalidCursor } from '../cursor.ts';
import type { ModelAccess } from '../model-access.ts';

interface ListChangesDeps {
  feed: ChangeFeed;
  access: ModelAccess;
}

export function listChanges({ feed, access }: ListChangesDeps): Handler<typeof contract> {
  return async ({ query: { after, limit, models: named }, caller }) => {
    named?.forEach((model) => access.requireList(caller, model));
    const models = named ?? access.listable(caller);
    const cursor = after === undefined ? undefined : decodeCursor(feedCursor, after, 'after');
    // The cursor says nothing about changes of other models. Rights and settings may have changed since.
    if (cursor && !models.every((model) => cursor.models.includes(model)))
      throw named ? invalidCursor('after') : expired();
    const page = await feed.read(cursor, models, limit);
    const items = page.changes.map(({ model, id, version, isDeleted, changedAt }) => ({
      model,
      id,
      version,
      deleted: isDeleted,
      changed_at: changedAt.toISOString(),
    }));
    const body = { items, next_cursor: encodeCursor(page.cursor), up_to_date: page.isUpToDate };
    return { status: 200, body };
  };
}
