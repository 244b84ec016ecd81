// `npm start`: starts the stack, runs the smoke test, prints the URLs, and keeps all processes running.
import { readLauncherConfig } from './config.ts';
import { smokeTest } from './smoke-test.ts';
import { Stopped } from './problem.ts';
import { startStack } from './stack.ts';
import { createTerminal, seconds } from './terminal.ts';
import { tour } from './tour.ts';
import { untilStopped } from './until-stopped.ts';

async function start(signal: AbortSignal): Promise<number> {
  const terminal = createTerminal();
  const { ci, began, ...config } = readLauncherConfig();
  const { state, identityDemo } = config;
  const fixed = { usualPorts: true, needsKafka: ci, showLogs: true };
  const running = await startStack({ ...config, ...fixed, terminal, signal });
  try {
    terminal.line('');
    terminal.line('The smoke test, once, through the gateway:');
    const failed = running.ended.then((reason) => Promise.reject(reason));
    await Promise.race([smokeTest(running.contentServer, terminal.line), failed]);
    running.publish();
    for (const line of tour(running.stack(), state, identityDemo)) terminal.line(line);
    terminal.line(`Ready after ${seconds(Date.now() - began)}.`);
    const reason = await running.ended;
    if (!(reason instanceof Stopped)) throw reason;
    terminal.line('Stopping …');
    return 0;
  } finally {
    await running.stop();
  }
}

await untilStopped(start, 0);
