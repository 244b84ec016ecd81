// A child that does what the upload says: crash, hang, or wait so many ms.
import { readFileSync } from 'node:fs';
import type { Job, Outcome } from '../processing/job.ts';

process.on('message', ({ path }: Job) => {
  const order = readFileSync(path, 'utf8');
  if (order === 'crash') process.kill(process.pid, 'SIGSEGV');
  else if (order !== 'hang') {
    const outcome: Outcome = { kind: 'pdf', mime: `pid ${process.pid}` };
    setTimeout(() => process.send!(outcome), Number(order));
  }
});
