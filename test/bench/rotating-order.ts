/** Runs `work` with each item in each round. The order rotates, so that no item always runs first. */
export async function inRotatingOrder<Thing>(
  things: readonly Thing[],
  rounds: number,
  work: (thing: Thing) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1)
    for (let turn = 0; turn < things.length; turn += 1) await work(things[(turn + round) % things.length]!);
}
