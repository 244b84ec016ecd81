/** Does `work` with each thing in each round; none always follows the same one. */
export async function inTurns<Thing>(
  things: readonly Thing[],
  rounds: number,
  work: (thing: Thing, index: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round += 1)
    for (let turn = 0; turn < things.length; turn += 1) {
      const index = (turn + round) % things.length;
      await work(things[index]!, index);
    }
}
