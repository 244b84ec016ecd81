import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import { seed } from '../../deploy/local/seed.ts';
import { logsAbout } from '../compose/docker.ts';
import { tokenOf } from '../support/accounts.ts';
import { closeEvents } from '../support/events.ts';
import type { GatewayRaceFigures } from '../support/gateway-race.ts';
import { closeRecords } from '../support/records.ts';
import { isWell, stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { lookAgain } from './containers.ts';

/** Traffic during faults: clients read, and a content server edits. */
export const traffic = { readsPerSecond: 40, changesPerSecond: 3 };

/**
 * Prepares a test file: a load balancer before the gateways, the demo accounts, and a healthy stack before each test.
 */
export function useStack(): () => Balancer {
  let balancer: Balancer;
  beforeAll(async () => {
    balancer = await startBalancer();
    await lookAgain(balancer);
    await until('all is well', isWell, 120_000);
    await seed(stack().postgres);
    await Promise.all((['user', 'machine', 'admin'] as const).map((one) => tokenOf(stack().gateway, one)));
  });
  beforeEach(() => until('all is well', isWell, 120_000));
  afterAll(async () => {
    await closeEvents();
    await closeRecords();
    await balancer?.stop();
  });
  return () => balancer;
}

/** Prints a race's figures. Expects that no read was stale, no change was lost and every read succeeded. */
export async function expectNothingOld(what: string, figures: GatewayRaceFigures): Promise<void> {
  console.log(`${what}:`, JSON.stringify(figures));
  if (figures.failed.length > 0) console.log(await logsAbout(figures.failed));
  expect(figures).toMatchObject({ stale: [], lost: [] });
  expect(Object.keys(figures.answers)).toEqual(['200']);
  expect(figures.clears).toBeGreaterThan(5);
  expect(figures.announced.length).toBeGreaterThan(5);
}
