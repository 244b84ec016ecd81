import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { createTerminal } from './terminal.ts';

test('marks the failed step, but not the steps that it aborted', async () => {
  process.env['TERM'] = 'dumb'; // Such a terminal understands no escape sequences.
  const out = Object.assign(new PassThrough(), { isTTY: true });
  const terminal = createTerminal(out as unknown as NodeJS.WriteStream);
  const controller = new AbortController();
  const { signal } = controller;
  const ended = new Promise<void>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason)),
  );
  const first = terminal.step('first', () => Promise.reject(new Error('broken')), signal);
  const second = terminal.step('second', () => ended, signal);
  await first.catch((error: unknown) => controller.abort(error));
  await expect(second).rejects.toThrow('broken');
  expect(String(out.read())).toMatch(/^✗ first +\d+\.\d s\n$/);
});
