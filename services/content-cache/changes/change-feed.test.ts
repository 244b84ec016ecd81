import { expect, test } from '@jest/globals';
import { raceChanges } from '../testing/change-race.ts';

// The long race: npm run proof -- change-feed
test('clients that follow the changes have what was committed, also after a process was killed', async () => {
  const size = { clients: 4, writers: 6, records: 30, kills: 1, pauseMs: 1_500, checked: 20 };
  const { violations } = await raceChanges(size);
  expect(violations).toEqual([]);
}, 240_000);
