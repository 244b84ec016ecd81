/** How much a proof does: all of it, or with `npm run proof -- --quick` so much as shows that it still works. */
export const proofSize = <Size>(full: Size, quick: Size): Size =>
  process.env['PROOF_QUICK'] === '1' ? quick : full;
