import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { dropRoot } from './decoder-user.ts';
import { inspect } from './inspect.ts';
import type { Job, Outcome } from './job.ts';
import { exitWithParent, sendToParent } from './parent.ts';
import { makeVariants, Unreadable } from './variants.ts';

// A cache is useless, because each file is processed once. One thread is enough, because there is a worker process for
// each core, as far as the memory allows.
sharp.cache(false);
sharp.concurrency(1);
// libvips reads many formats; only those in `formats` of inspect.ts are enabled.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif'].map((kind) => `VipsForeignLoad${kind}Buffer`),
});

/** Reads the whole file first. A failing disk is then an error here, and every decoder error is caused by the file. */
async function processJob(job: Job): Promise<Outcome> {
  const file = await readFile(job.path);
  const type = await inspect(file);
  return type.kind === 'image' ? makeVariants(file, job, type.mime) : type;
}

dropRoot();
exitWithParent();
process.on('message', (job: Job) => {
  void processJob(job)
    .catch((error: unknown): Outcome => {
      if (error instanceof Unreadable) return { kind: 'refused', refusal: 'unreadable_file' };
      return { kind: 'failed', message: String(error) };
    })
    .then(sendToParent);
});
sendToParent('ready');
