import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { inspect } from './inspect.ts';
import type { Job, Outcome } from './job.ts';
import { endWithParent, tellParent } from './parent.ts';
import { makeVariants, Unreadable } from './variants.ts';

// No file is processed twice, and there are at most as many worker processes as cores.
sharp.cache(false);
sharp.concurrency(1);
// libvips reads many formats; only the accepted ones are enabled.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif'].map((kind) => `VipsForeignLoad${kind}Buffer`),
});

/** Reads the whole file first: so a failing disk is an error here, and every decoder error is the fault of the bytes. */
async function carryOut(job: Job): Promise<Outcome> {
  const file = await readFile(job.path);
  const kind = await inspect(file);
  return kind.kind === 'picture' ? makeVariants(file, job, kind.mime) : kind;
}

endWithParent();
process.on('message', (job: Job) => {
  void carryOut(job)
    .catch((error: unknown): Outcome => {
      if (error instanceof Unreadable) return { kind: 'refused', refusal: 'unreadable_file' };
      return { kind: 'failed', message: String(error) };
    })
    .then(tellParent);
});
tellParent('ready');
