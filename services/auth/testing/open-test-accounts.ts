import { createTestDatabase } from '../../../test/support/test-database.ts';
import { openAccounts } from '../accounts.ts';
export async function openTestAccounts(origin?: Parameters<typeof createTestDatabase>[0]) {
  const { url, drop } = await createTestDatabase(origin);
  const accounts = await openAccounts(url);
  async function close(): Promise<void> {
    await accounts.close();
    await drop();
  }
  return { ...accounts, url, close };
}
