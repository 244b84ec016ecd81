/** Chooses the size of a proof: `quick` with `npm run proof -- --quick`, which only shows that the proof works. */
export const proofSize = <Size>(full: Size, quick: Size): Size =>
  process.env['PROOF_QUICK'] === '1' ? quick : full;
