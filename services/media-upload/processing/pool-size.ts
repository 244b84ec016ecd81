/** With two worker processes under 700 MB, with some reserve for memory that is used before it is measured. */
const ownBytes = 260 * 2 ** 20;
const bytesPerWorker = 190 * 2 ** 20;

/**
 * How many worker processes run, and how much memory (in bytes) they and the service may use together.
 *
 * A container with a memory limit still sees all cores of its machine. With a worker process for each of them, the
 * kernel would kill processes, and their uploads, long before the service's own limit is reached.
 *
 * @param memory memory limit of all of them, in bytes; 0: unknown
 */
export function poolSizeFor(cores: number, memory: number): { size: number; maxBytes: number } {
  const fitting = memory > 0 ? Math.floor((memory - ownBytes) / bytesPerWorker) : Infinity;
  const size = Math.max(1, Math.min(cores, fitting));
  return { size, maxBytes: ownBytes + size * bytesPerWorker };
}
