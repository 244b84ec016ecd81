// A child that does what the upload says: crash, hang, tell what its environment has, or wait so many ms.
// `starved` works half of the time, for ever. `fill 300` takes 300 MB, keeps them, and waits a second.
import { readFileSync } from 'node:fs';
import type { Job, Outcome } from '../processing/job.ts';

const kept: Buffer[] = [];

function burn(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

process.on('message', ({ path }: Job) => {
  const order = readFileSync(path, 'utf8');
  if (order === 'crash') process.kill(process.pid, 'SIGSEGV');
  else if (order === 'starved') setInterval(() => burn(5), 10);
  else if (order !== 'hang') {
    const environment = Object.keys(process.env).join(' ');
    const mime = order === 'environment' ? environment : `pid ${process.pid}`;
    const outcome: Outcome = { kind: 'pdf', mime };
    const megabytes = Number(/^fill (\d+)$/.exec(order)?.[1] ?? 0);
    if (megabytes > 0) kept.push(Buffer.alloc(megabytes * 2 ** 20, 1));
    setTimeout(() => process.send!(outcome), megabytes > 0 ? 1_000 : Number(order) || 0);
  }
});
