import { board } from './board.ts';
import { cache } from './cache.ts';
import { gateway } from './gateway.ts';
import { media } from './media.ts';
import { runbooks } from './runbooks.ts';
import { serviceBoard } from './service.ts';
import { slowLog } from './slow-log.ts';
import { stores } from './stores.ts';
import { targets } from './targets.ts';

const boards = [targets, gateway, cache, serviceBoard, media, stores, slowLog, runbooks];

/** All dashboards. */
export const dashboards = () => boards.map((one) => board(one).build());

/** Returns the contents of the dashboards' files by their names. */
export const render = (): Map<string, string> =>
  new Map(
    dashboards().map((dashboard) => [`${dashboard.uid}.json`, `${JSON.stringify(dashboard, null, 2)}\n`]),
  );
