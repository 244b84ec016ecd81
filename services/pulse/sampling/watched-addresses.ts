import { watchProcess, type WatchedProcess } from './watched-process.ts';

/** So long what is known of a process outlives its address: as long as the window that its counts are judged in. */
const keptMs = 300_000;

interface Watched {
  process: WatchedProcess;
  /** When the address was last there, in ms. */
  at: number;
}

/**
 * What is remembered of the process at each address. A name loses an address while its process is not ready, and gets it
 * back: what the process counted before is not new then.
 */
export function watchAddresses() {
  const watched = new Map<string, Watched>();

  function watch(address: string, at: number): WatchedProcess {
    const process = watched.get(address)?.process ?? watchProcess(address, at);
    watched.set(address, { process, at });
    return process;
  }

  /** The processes at these addresses, at `now` (ms). */
  return (addresses: readonly string[], now: number): WatchedProcess[] => {
    for (const [address, { at }] of watched) if (at < now - keptMs) watched.delete(address);
    return addresses.map((address) => watch(address, now));
  };
}
