import { expect, test } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { until } from '../../../test/support/wait.ts';
import { readPassword } from './read-password.ts';

/** A terminal at which `typed` is entered, one answer per question. */
function terminal(...typed: string[]) {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => input });
  const output = new PassThrough();
  let shown = '';
  output.on('data', (chunk: Buffer) => (shown += chunk.toString()));
  const password = readPassword({ input, prompts: output, withAccounts: () => Promise.reject(new Error()) });
  const answers = async () => {
    for (const [index, answer] of typed.entries()) {
      await until('it asks', () => shown.split(': ').length === index + 2);
      input.write(answer);
    }
  };
  return { password, answers, shown: () => shown };
}

test('asks twice for the password at a terminal and does not show it', async () => {
  const { password, answers, shown } = terminal('hushed wordz\x7fs\r', 'hushed words\r');
  await answers();
  expect(await password).toBe('hushed words');
  expect(shown()).toBe('Password: \nAgain: \n');
});

test('refuses two different passwords', async () => {
  const { password, answers } = terminal('hushed words\r', 'hushed wordz\r');
  await Promise.all([answers(), expect(password).rejects.toThrow('differ')]);
});

test.each(['half\x03', '\x04'])('%j cancels the prompt', async (typed) => {
  const { password, answers } = terminal(typed);
  await Promise.all([answers(), expect(password).rejects.toThrow('Nothing was done.')]);
});
