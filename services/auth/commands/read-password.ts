import { createInterface } from 'node:readline/promises';
import { Writable, type Readable } from 'node:stream';
import { CommandError, type Surroundings } from './command.ts';

async function firstLine(input: Readable): Promise<string> {
  for await (const line of createInterface({ input })) return line;
  throw new CommandError('Give the password as the first line of stdin.');
}

/** Asks at the terminal; what is typed is not shown. Throws CommandError on Ctrl-C and Ctrl-D. */
async function prompt(input: Readable, output: Writable, question: string): Promise<string> {
  // readline shows what is typed on its output, so that one leads nowhere.
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: hidden, terminal: true });
  output.write(question);
  try {
    return await new Promise((resolve, reject) => {
      lines.once('close', () => reject(new CommandError('Nothing was done.')));
      lines.question('').then(resolve, reject);
    });
  } finally {
    lines.close();
    output.write('\n');
  }
}

/** A new password: at a terminal asked for twice, else the first line of `input`. Throws CommandError. */
export async function readPassword({ input, prompts }: Surroundings): Promise<string> {
  if (!input.isTTY) return firstLine(input);
  const password = await prompt(input, prompts, 'Password: ');
  if ((await prompt(input, prompts, 'Again: ')) === password) return password;
  throw new CommandError('The two passwords are not the same.');
}
