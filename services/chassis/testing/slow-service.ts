// A process for run.test.ts: GET / says so and answers after a second. Its argument: how long it may
// finish when it is told to stop, in ms.
import express from 'express';
import { setTimeout as sleep } from 'node:timers/promises';
import { commonConfig, readConfig, run } from '../index.ts';

await run(
  'slow-service',
  () => readConfig(commonConfig(8090), process.env),
  async ({ onStop }) => {
    onStop(() => process.stdout.write('closed\n'));
    const app = express();
    app.get('/', async (_request, response) => {
      process.stdout.write('working\n');
      await sleep(1_000);
      response.json({ done: true });
    });
    const [, , finishMs] = process.argv;
    return { app, checks: {}, ...(finishMs ? { finishMs: Number(finishMs) } : {}) };
  },
);
