import { afterEach, expect, test } from '@jest/globals';
import { json } from 'node:stream/consumers';
import { startHttpServer } from '../../test/support/http-server.ts';
import { until } from '../../test/support/wait.ts';
import { createAuditClient } from './audit.ts';
import { createLogger } from './logger.ts';

const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

const caller = { kind: 'machine', clientId: 'cms', scopes: new Set<never>() } as const;
const action = {
  event: 'failed_jobs_deleted',
  caller,
  address: '192.0.2.1',
  details: { job_id: 4 },
} as const;

async function clientOf(respond: (attempt: number) => number | undefined) {
  const log: string[] = [];
  const bodies: unknown[] = [];
  const { origin, close } = await startHttpServer(async (request, response) => {
    const status = respond(bodies.push(await json(request)));
    if (status) response.writeHead(status).end();
  });
  closers.push(close);
  const logger = createLogger('test', 'info', { write: (line) => void log.push(line) });
  return { add: createAuditClient(origin, fetch, logger), bodies, log };
}

test('sends the action and its caller', async () => {
  const { add, bodies } = await clientOf(() => 204);
  expect(await add(action)).toBe(true);
  const { caller: _, ...sent } = action;
  expect(bodies).toEqual([{ ...sent, actor: 'client:cms' }]);
});

test.each([
  ['hangs', undefined],
  ['does not know the endpoint yet', 404],
])(
  'an auth service that %s delays no action after the first, and gets entries again later',
  async (_, status) => {
    let isBroken = true;
    const { add, bodies, log } = await clientOf(() => (isBroken ? status : 204));
    expect(await add(action)).toBe(false);
    expect(await Promise.all([add(action), add(action), add(action)])).toEqual([false, false, false]);
    expect(bodies).toHaveLength(1);
    expect(log).toHaveLength(1);
    isBroken = false;
    await until('entries are stored again', () => add(action));
  },
);
