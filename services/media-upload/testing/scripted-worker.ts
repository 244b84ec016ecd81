// A worker process that does what the upload says:
//   <ms>            waits that long
//   crash           ends with SIGSEGV, as a decoder that reads a wrong address
//   hang            waits for ever without using a core
//   busy            uses a core for ever
//   native          occupies a thread of libuv's pool for hours, as an encoder does
//   until <path>    writes its process id to <path>.pid, then waits until <path> exists
//   fill <MB>       takes so much memory, and keeps it for ever
//   link <path>     returns an image whose thumb is a symbolic link
//   name <name>     returns an image whose thumb has another name
//   environment     returns the names of its environment variables
//   open            returns what its file descriptors refer to
//   read <path>     returns 'readable' or the error code; PARENT in the path is the process that started it
import { pbkdf2 } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, Outcome } from '../processing/job.ts';
import { dropRoot } from '../processing/decoder-user.ts';
import { exitWithParent, sendToParent } from '../processing/parent.ts';

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

function openFiles(): string {
  // readdirSync has closed its own.
  const numbers = readdirSync('/proc/self/fd').filter((fd) => existsSync(`/proc/self/fd/${fd}`));
  return numbers.map((fd) => readlinkSync(`/proc/self/fd/${fd}`)).join(' ');
}

function tryToRead(path: string): string {
  try {
    closeSync(openSync(path.replace('PARENT', String(process.ppid)), 'r'));
    return 'readable';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code!;
  }
}

const findings: Record<string, (argument: string) => string> = {
  environment: () => Object.keys(process.env).join(' '),
  open: openFiles,
  read: tryToRead,
};

function image(name: string): Outcome {
  const sides = { width: 1, height: 1 };
  const variants = [{ name: name as 'thumb', ...sides, bytes: 1 }];
  return { kind: 'image', mime: 'image/png', ...sides, placeholder: '', variants };
}

const orders: Record<string, (argument: string) => Promise<unknown> | void> = {
  crash: () => void process.kill(process.pid, 'SIGSEGV'),
  hang: () => never,
  busy: () => (setInterval(() => burn(100), 0), never),
  native: () => (pbkdf2('', '', 2 ** 31 - 1, 64, 'sha512', () => undefined), never),
  until: untilExists,
  fill: (megabytes) => (kept.push(Buffer.alloc(Number(megabytes) * 2 ** 20, 1)), never),
};

async function carryOut({ path, folder }: Job): Promise<Outcome> {
  const [order = '', argument = ''] = readFileSync(path, 'utf8').split(' ');
  if (order === 'link') symlinkSync(argument, join(folder, 'thumb'));
  if (order === 'link' || order === 'name') return image(order === 'link' ? 'thumb' : argument);
  jobsUnderWay += 1;
  const sharing = jobsUnderWay > 1 ? ' shared' : '';
  await (orders[order]?.(argument) ?? sleep(Number(order) || 0));
  jobsUnderWay -= 1;
  return { kind: 'pdf', mime: findings[order]?.(argument) ?? `pid ${process.pid}${sharing}` };
}

dropRoot();
exitWithParent();
process.on('message', (job: Job) => void carryOut(job).then(sendToParent));
sendToParent('ready');
