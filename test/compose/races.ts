import { afterAll, expect } from '@jest/globals';
import { closeEvents } from '../support/events.ts';
import type { GatewayRaceFigures } from '../support/gateway-race.ts';
import { closeRecords } from '../support/records.ts';
import { isStackReady } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { compose } from './docker.ts';

/** Traffic during faults: clients read, and a content server edits. */
export const traffic = { readsPerSecond: 40, changesPerSecond: 3 };

export const untilStackReady = () => until('every service is ready', isStackReady, 120_000);
export const closeAfterRaces = () =>
  afterAll(async () => {
    await closeEvents();
    await closeRecords();
  });

/** Prints a race's figures and the log lines about failed reads. Expects that no read was stale and no change was lost. */
export async function expectNothingOld(what: string, figures: GatewayRaceFigures): Promise<void> {
  console.log(`${what}:`, JSON.stringify(figures));
  const { failed } = figures;
  const lines = failed.length > 0 ? (await compose('logs', '--no-color')).split('\n') : [];
  console.log(lines.filter((line) => failed.some((id) => line.includes(id))).join('\n'));
  expect(figures).toMatchObject({ stale: [], lost: [] });
}

/** Expects in addition that every read succeeded. */
export async function expectNoFailure(what: string, figures: GatewayRaceFigures): Promise<void> {
  await expectNothingOld(what, figures);
  expect(Object.keys(figures.answers)).toEqual(['200']);
}
