import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { stack, pidOf } from './stack.ts';

export interface Resources {
  pid: number;
  /** Open files, including sockets (Linux: /proc/<pid>/fd). */
  files: number;
  sockets: number;
  /** Timers, sockets, servers and child processes, as Node counts them. */
  handles: number;
  rss: number;
}

const valueOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);

export async function resourcesOf(service: string): Promise<Resources> {
  const pid = pidOf(service);
  const text = await (await fetch(`${stack().services[service]!.internal}/metrics`)).text();
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // The file was closed since the listing.
      return '';
    }
  });
  return {
    pid,
    files: links.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
    handles: valueOf(text, 'nodejs_active_handles_total'),
    rss: Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024,
  };
}
