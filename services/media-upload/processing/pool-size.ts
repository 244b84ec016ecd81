/**
 * Memory of the service and two worker processes below 700 MB, with a reserve for memory that is used before it is
 * measured.
 */
const ownBytes = 260 * 2 ** 20;
const bytesPerWorker = 190 * 2 ** 20;

/**
 * Returns the number of worker processes, and the memory (in bytes) that they and the service may use together.
 *
 * A container with a memory limit sees all cores of its machine. With a worker process for each core, the kernel would
 * kill processes and their uploads before the service's own limit applies.
 *
 * @param memory memory limit of all processes, in bytes; 0: unknown
 */
export function poolSizeFor(cores: number, memory: number): { size: number; maxBytes: number } {
  const fitting = memory > 0 ? Math.floor((memory - ownBytes) / bytesPerWorker) : Infinity;
  const size = Math.max(1, Math.min(cores, fitting));
  return { size, maxBytes: ownBytes + size * bytesPerWorker };
}
