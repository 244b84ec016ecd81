// A child that does what the upload says: crash, hang, tell what its environment has, or wait so many ms.
import { readFileSync } from 'node:fs';
import type { Job, Outcome } from '../processing/job.ts';

process.on('message', ({ path }: Job) => {
  const order = readFileSync(path, 'utf8');
  if (order === 'crash') process.kill(process.pid, 'SIGSEGV');
  else if (order !== 'hang') {
    const environment = Object.keys(process.env).join(' ');
    const mime = order === 'environment' ? environment : `pid ${process.pid}`;
    const outcome: Outcome = { kind: 'pdf', mime };
    setTimeout(() => process.send!(outcome), Number(order) || 0);
  }
});
