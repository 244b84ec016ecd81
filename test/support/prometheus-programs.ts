import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { canInstall } from '../../deploy/local/apt.ts';
import { DOWNLOADS } from '../../deploy/local/config.ts';
import { lastLines, onPath, runCommand } from '../../deploy/local/run-command.ts';

/** The paths of the real programs. */
export interface PrometheusPrograms {
  prometheus: string;
  promtool: string;
  alertmanager: string;
  amtool: string;
}

const packages = ['prometheus', 'prometheus-alertmanager'];
const folder = join(DOWNLOADS, 'prometheus');
const bin = join(folder, 'usr', 'bin');
/** Where Debian's Alertmanager looks for the texts of its messages, and nowhere else. */
const texts = '/usr/share/prometheus/alertmanager';

/** Debian's Alertmanager has a longer name than the one its makers give it. */
function onThePath(): PrometheusPrograms | undefined {
  const [prometheus, promtool, amtool] = ['prometheus', 'promtool', 'amtool'].map((name) => onPath(name));
  const alertmanager = onPath('alertmanager', 'prometheus-alertmanager');
  return prometheus && promtool && alertmanager && amtool
    ? { prometheus, promtool, alertmanager, amtool }
    : undefined;
}

/**
 * Unpacks Debian's packages into the folder of downloads. Installed they would start servers on the machine that listen
 * to everybody; of their files only the texts go to where they belong. Two test files may do so at once: each in a draft
 * of its own, which gets the right name when it is complete.
 * @returns why it did not work; undefined when they are there
 */
async function unpackDebian(): Promise<string | undefined> {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true, mode: 0o755 });
  const { signal } = new AbortController();
  const run = (command: string, ...args: string[]) =>
    runCommand(command, args, { signal, cwd: draft, within: 120_000 });
  const download = () => run('apt-get', '-q', 'download', ...packages);
  try {
    let fetched = await download();
    if (fetched.code !== 0) {
      // A machine that is new knows of no packages.
      await run('apt-get', '-q', 'update');
      fetched = await download();
    }
    if (fetched.code !== 0) return lastLines(fetched.output, 1)[0];
    for (const file of readdirSync(draft).filter((name) => name.endsWith('.deb'))) {
      const { code, output } = await run('dpkg-deb', '-x', file, '.');
      if (code !== 0) return lastLines(output, 1)[0];
      rmSync(join(draft, file));
    }
    if (!existsSync(texts)) cpSync(join(draft, texts), texts, { recursive: true });
    if (!existsSync(folder)) renameSync(draft, folder);
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Prometheus and Alertmanager with their tools: those on PATH, else Debian's.
 * @throws with what is missing and how to get it
 */
export async function findPrograms(): Promise<PrometheusPrograms> {
  const found = onThePath();
  if (found) return found;
  const isThere = existsSync(folder) && existsSync(texts);
  const reason = isThere
    ? undefined
    : canInstall()
      ? await unpackDebian()
      : 'this is not Debian, or not root';
  if (reason !== undefined)
    throw new Error(
      `There is no Prometheus (${reason}): put prometheus, promtool, alertmanager and amtool on PATH, Prometheus 2.42 or newer.`,
    );
  return {
    prometheus: join(bin, 'prometheus'),
    promtool: join(bin, 'promtool'),
    alertmanager: join(bin, 'prometheus-alertmanager'),
    amtool: join(bin, 'amtool'),
  };
}
