import { chmod, chown } from 'node:fs/promises';

/** This user ID has no account, so it owns only the files of its jobs. */
const decoderUser = 59_083;

const isRoot = () => process.getuid?.() === 0;

/**
 * Changes this worker process from root to a user of its own. Call it once all modules are loaded, because that user may
 * not be able to read them. Linux then denies the process the service's files, memory and environment. Throws if root
 * lacks the right to change users, as in a container without CAP_SETUID and CAP_SETGID. Does nothing for other users.
 */
export function dropRoot(): void {
  if (!isRoot()) return;
  process.setgroups!([]);
  process.setgid!(decoderUser);
  process.setuid!(decoderUser);
}

/** If the service runs as root, lets its worker processes start in this folder. They cannot list the folder. */
export async function allowTraversal(folder: string): Promise<void> {
  if (isRoot()) await chmod(folder, 0o711);
}

/** If the service runs as root, makes its worker processes the owner of these files and folders. */
export async function giveToDecoder(paths: readonly string[]): Promise<void> {
  if (!isRoot()) return;
  for (const path of paths) await chown(path, decoderUser, decoderUser);
}
