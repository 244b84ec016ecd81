// A process for run.test.ts: GET / prints a line and responds after a second. Its argument is the grace period in ms.
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
    const [, , gracePeriodMs] = process.argv;
    return { app, checks: {}, ...(gracePeriodMs ? { gracePeriodMs: Number(gracePeriodMs) } : {}) };
  },
);
