// A worker process that does what the upload says:
//   <ms>            waits that long
//   crash           ends with SIGSEGV, as a decoder that reads a wrong address
//   hang            waits for ever without using a core
//   busy            uses a core for ever
//   native          occupies a thread of libuv's pool for hours, as an encoder does
//   until <path>    writes its process id to <path>.pid, then waits until <path> exists
//   fill <MB>       takes so much memory, keeps it, and waits a second
//   environment     returns the names of its environment variables
import { pbkdf2 } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Outcome } from '../processing/job.ts';
import { endWithParent, tellParent } from '../processing/parent.ts';

const kept: Buffer[] = [];
const never = new Promise<void>(() => undefined);
let jobsUnderWay = 0;

function burn(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

async function untilExists(path: string): Promise<void> {
  writeFileSync(`${path}.pid`, String(process.pid));
  while (!existsSync(path)) await sleep(10);
}

const orders: Record<string, (argument: string) => Promise<unknown> | void> = {
  crash: () => void process.kill(process.pid, 'SIGSEGV'),
  hang: () => never,
  busy: () => (setInterval(() => burn(100), 0), never),
  native: () => (pbkdf2('', '', 2 ** 31 - 1, 64, 'sha512', () => undefined), never),
  until: untilExists,
  fill: (megabytes) => {
    kept.push(Buffer.alloc(Number(megabytes) * 2 ** 20, 1));
    return sleep(1_000);
  },
};

async function carryOut({ path }: Job): Promise<Outcome> {
  const [order = '', argument = ''] = readFileSync(path, 'utf8').split(' ');
  jobsUnderWay += 1;
  const sharing = jobsUnderWay > 1 ? ' shared' : '';
  await (orders[order]?.(argument) ?? sleep(Number(order) || 0));
  jobsUnderWay -= 1;
  const environment = Object.keys(process.env).join(' ');
  return { kind: 'pdf', mime: order === 'environment' ? environment : `pid ${process.pid}${sharing}` };
}

endWithParent();
process.on('message', (job: Job) => void carryOut(job).then(tellParent));
tellParent('ready');
