// Clients that follow the changes have exactly what was committed, while processes are killed.
import { expect, test } from '@jest/globals';
import { proofSize } from '../../../test/support/proof-size.ts';
import { raceChanges } from '../testing/change-race.ts';

const kills = proofSize(30, 3);

test('20 clients miss no change and see no other while processes are killed every 6 s', async () => {
  const size = { clients: 20, writers: proofSize(64, 16), records: 100, kills, pauseMs: 6_000 };
  const { violations, ...figures } = await raceChanges({ ...size, checked: proofSize(1_000, 100) });
  console.info(JSON.stringify({ ...size, ...figures, violations: violations.length }));
  expect(violations).toEqual([]);
}, 900_000);
