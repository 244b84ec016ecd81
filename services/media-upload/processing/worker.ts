// A child process that looks at uploads and makes their variants, one at a time. What a file may do to a decoder, it
// does here: see pool.ts.
import sharp from 'sharp';
import { inspect } from './inspect.ts';
import type { Job, Outcome } from './job.ts';
import { makeVariants, Unreadable } from './variants.ts';

// Nothing comes twice, and there are as many children as cores, or fewer.
sharp.cache(false);
sharp.concurrency(1);
// Only what is taken: libvips reads many more kinds.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Heif'].map((kind) => `VipsForeignLoad${kind}File`),
});

async function carryOut(job: Job): Promise<Outcome> {
  const kind = await inspect(job.path);
  return kind.kind === 'picture' ? makeVariants(job, kind.mime) : kind;
}

process.on('message', (job: Job) => {
  void carryOut(job)
    .catch((error: unknown): Outcome => {
      if (error instanceof Unreadable) return { kind: 'refused', refusal: 'unreadable_file' };
      return { kind: 'failed', message: String(error) };
    })
    .then((outcome) => process.send!(outcome));
});

// The parent ends us when it is done. A Ctrl-C reaches us as well, and must not.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
// It is gone: not even a picture that is being decoded keeps us.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
