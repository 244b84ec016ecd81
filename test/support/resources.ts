import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { stack, pidOf } from './stack.ts';

const valueOf = (text: string, name: string): number =>
  Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);

export async function resourcesOf(service: string) {
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
    /** Open files, including sockets (Linux: /proc/<pid>/fd). */
    files: links.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
    /** Timers, sockets, servers and child processes, as Node counts them. */
    handles: valueOf(text, 'nodejs_active_handles_total'),
    rss: Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024,
  };
}
export type Resources = Awaited<ReturnType<typeof resourcesOf>>;
