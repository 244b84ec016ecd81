import { parseClientName, type Command } from './command.ts';
import { changeClient } from './change-client.ts';

/** Runs `disable-client NAME`; permanently revokes the client's secret and tokens. */
export const disableClient: Command = async (args, { withAccounts }) => {
  const client = parseClientName(args);
  await withAccounts((accounts) =>
    changeClient(accounts, client, 'client_disabled', (clients) => clients.disable(client)),
  );
  return `Disabled client ${client}: its secret and its tokens are of no use any more.`;
};
