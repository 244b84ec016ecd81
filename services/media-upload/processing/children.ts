/** With two children under 700 MB, with some room for what is taken before it is noticed. */
const ownBytes = 260 * 2 ** 20;
const bytesPerChild = 190 * 2 ** 20;

/**
 * How many children work, and how much memory (in bytes) they and the service may have in use together.
 *
 * A container that has a limit of memory still sees all cores of its machine: as many children as those would be killed
 * by the kernel, and uploads with them, long before they come to what they may have.
 *
 * @param memory what the kernel gives all of them, in bytes; 0: nobody knows
 */
export function childrenFor(cores: number, memory: number): { size: number; maxBytes: number } {
  const fitting = memory > 0 ? Math.floor((memory - ownBytes) / bytesPerChild) : Infinity;
  const size = Math.max(1, Math.min(cores, fitting));
  return { size, maxBytes: ownBytes + size * bytesPerChild };
}
