import { byCommand } from '../administration.ts';
import type { AuditEvent } from '@content-platform/contract';
import type { Accounts } from '../accounts.ts';
import type { ClientStore } from '../client-store.ts';
import { CommandError } from './command.ts';

/**
 * Runs `change`, which removes a client's secret, and revokes its tokens. Throws CommandError if the client does not
 * exist.
 */
export async function changeClient(
  { transaction }: Accounts,
  client: string,
  event: AuditEvent,
  change: (clients: ClientStore) => Promise<boolean>,
): Promise<void> {
  await transaction(async ({ clients, revocations, audit }) => {
    const found = await change(clients);
    if (!found) throw new CommandError(`Client ${client} was not found, or is disabled.`);
    await audit.add({ ...byCommand, event, details: { client } });
    await revocations.add({ client });
  });
}
