import { createInterface } from 'node:readline/promises';
import { Writable, type Readable } from 'node:stream';
import type { CommandContext } from './command.ts';

async function firstLine(input: Readable): Promise<string> {
  for await (const line of createInterface({ input })) return line;
  throw new Error('Give the password as the first line of stdin.');
}

/** Asks for a password at the terminal without showing the input. Throws on Ctrl-C and Ctrl-D. */
async function prompt(input: Readable, output: Writable, question: string): Promise<string> {
  // readline echoes the input to its output, so this output discards it.
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: hidden, terminal: true });
  output.write(question);
  try {
    return await new Promise((resolve, reject) => {
      lines.once('close', () => reject(new Error('Nothing was done.')));
      lines.question('').then(resolve, reject);
    });
  } finally {
    lines.close();
    output.write('\n');
  }
}

/** Asks twice at a terminal; otherwise reads the first line of `input`. Throws if there is none, or the two differ. */
export async function readPassword({ input, prompts }: CommandContext): Promise<string> {
  if (!input.isTTY) return firstLine(input);
  const password = await prompt(input, prompts, 'Password: ');
  if ((await prompt(input, prompts, 'Again: ')) === password) return password;
  throw new Error('The two passwords differ.');
}
