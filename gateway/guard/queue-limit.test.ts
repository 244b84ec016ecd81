import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { GatewayRequest, GatewayResponse } from '../request-context.ts';
import { createLoadShedding } from './load-shedding.ts';

let now: number;
let workMs: number;
let begun: number;
let refused: number;
let longestWaitMs: number;
let shedding: ReturnType<typeof createLoadShedding>;
beforeEach(() => {
  [now, workMs, begun, refused, longestWaitMs] = [0, 0.5, 0, 0, 0];
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  shedding = createLoadShedding({
    begin(_response, arrivedAt) {
      longestWaitMs = Math.max(longestWaitMs, now - arrivedAt);
      begun += 1;
      now += workMs;
    },
    metrics: { requestsShed: { inc: () => (refused += 1) } } as never,
    corsHeaders: () => ({}),
    drainMs: 0,
    isExempt: () => false,
    areConnectionsShared: true,
  });
});
afterEach(() => void jest.restoreAllMocks());

function send(): void {
  const request = new IncomingMessage(new Socket()) as GatewayRequest;
  request.complete = true;
  shedding.admit(request, new ServerResponse(request) as unknown as GatewayResponse);
}

/** Sends requests at the same time; `pauseMs`: the process then stands still. Returns how many were refused. */
async function burst(count: number, pauseMs = 0): Promise<number> {
  [begun, refused] = [0, 0];
  for (let sent = 0; sent < count; sent += 1) send();
  now += pauseMs;
  const isDone = () => begun + refused === count;
  while (!isDone()) await nextTurn();
  return refused;
}

test('after pauses of the process, a burst that can be answered in time is not refused', async () => {
  for (let pauses = 0; pauses < 10; pauses += 1) {
    await burst(100, 5_000);
    for (let bursts = 0; bursts < 20; bursts += 1) await burst(60);
  }
  expect(await burst(300)).toBe(0);
});

test('a process that gets little CPU does not refuse a burst', async () => {
  workMs = 8;
  for (let bursts = 0; bursts < 5; bursts += 1) expect(await burst(300)).toBe(0);
});

test('under lasting overload, the requests that are not refused begin within 500 ms', async () => {
  workMs = 4;
  for (let sent = 0; performance.now() < 10_000; await nextTurn()) {
    for (; sent < (now * 3) / workMs || sent < 16; sent += 1) send();
    if (now < 3_000) longestWaitMs = 0;
  }
  expect(longestWaitMs).toBeGreaterThan(300);
  expect(longestWaitMs).toBeLessThan(500);
});
