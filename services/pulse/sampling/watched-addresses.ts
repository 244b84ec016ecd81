import { watchProcess, type WatchedProcess } from './watched-process.ts';

/** A process is remembered this long after its address was last resolved: the window of the targets. */
const keptMs = 300_000;

interface Watched {
  process: WatchedProcess;
  /** When the address was last resolved, in ms. */
  at: number;
}

/**
 * Remembers the process at each address. A name loses the address of a process that is not ready; when the address
 * returns, the process's earlier counts must not count as new.
 */
export function watchAddresses() {
  const watched = new Map<string, Watched>();

  function watch(address: string, at: number): WatchedProcess {
    const process = watched.get(address)?.process ?? watchProcess(address, at);
    watched.set(address, { process, at });
    return process;
  }

  /** Returns the processes at these addresses, at `now` (ms). */
  return (addresses: readonly string[], now: number): WatchedProcess[] => {
    for (const [address, { at }] of watched) if (at < now - keptMs) watched.delete(address);
    return addresses.map((address) => watch(address, now));
  };
}
