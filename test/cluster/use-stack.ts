import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import { seed } from '../../deploy/local/seed.ts';
import { closeAfterRaces, expectNoFailure, untilStackReady } from '../compose/races.ts';
import { tokenOf } from '../support/accounts.ts';
import type { GatewayRaceFigures } from '../support/gateway-race.ts';
import { stack } from '../support/stack.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { lookAgain } from './containers.ts';

/** Prepares a test file: a load balancer before the gateways, demo accounts, and a healthy stack before each test. */
export function useStack(): () => Balancer {
  let balancer: Balancer;
  beforeAll(async () => {
    balancer = await startBalancer();
    await lookAgain(balancer);
    await untilStackReady();
    await seed(stack().postgres);
    await Promise.all((['user', 'machine', 'admin'] as const).map((one) => tokenOf(stack().gateway, one)));
  });
  beforeEach(untilStackReady);
  closeAfterRaces();
  afterAll(() => balancer?.stop());
  return () => balancer;
}

/** Expects that no read was stale or failed, no change was lost, and changes were announced in both ways. */
export async function expectNothingLost(what: string, figures: GatewayRaceFigures): Promise<void> {
  await expectNoFailure(what, figures);
  expect(figures.clears).toBeGreaterThan(5);
  expect(figures.announced.length).toBeGreaterThan(5);
}
