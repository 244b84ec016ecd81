import { command } from '../administration.ts';
import { clientNamed } from './arguments.ts';
import { CommandError, type Command } from './command.ts';

/** disable-client NAME; for good: its secret and its tokens are of no use any more. */
export const disableClient: Command = async (args, { open }) => {
  const client = clientNamed(args);
  const accounts = await open();
  try {
    await accounts.transaction(async ({ clients, revocations, audit }) => {
      const found = await clients.disable(client);
      if (!found) throw new CommandError(`There is no client named ${client} that is not disabled.`);
      await audit.add({ ...command, event: 'client_disabled', details: { client } });
      await revocations.add({ client });
    });
    return `Disabled client ${client}: its secret and its tokens are of no use any more.`;
  } finally {
    await accounts.close();
  }
};
