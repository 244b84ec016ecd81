import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { canInstall } from '../../deploy/local/apt.ts';
import { DOWNLOADS } from '../../deploy/local/config.ts';
import { lastLines, onPath, runCommand } from '../../deploy/local/run-command.ts';

export type PrometheusPrograms = Record<'prometheus' | 'promtool' | 'alertmanager' | 'amtool', string>;

const packages = ['prometheus', 'prometheus-alertmanager'];
const folder = join(DOWNLOADS, 'prometheus');
const bin = join(folder, 'usr', 'bin');
/** The only folder where Debian's Alertmanager searches its message templates. */
const texts = '/usr/share/prometheus/alertmanager';

/** Finds the programs on PATH. Debian renamed alertmanager to prometheus-alertmanager. */
function onThePath(): PrometheusPrograms | undefined {
  const [prometheus, promtool, amtool] = ['prometheus', 'promtool', 'amtool'].map((name) => onPath(name));
  const alertmanager = onPath('alertmanager', 'prometheus-alertmanager');
  return prometheus && promtool && alertmanager && amtool
    ? { prometheus, promtool, alertmanager, amtool }
    : undefined;
}

/**
 * Unpacks Debian's packages into the download folder: installing them would start servers on every interface. Two
 * tests may run this at once, so each fills its own draft. Returns the reason of a failure.
 */
async function unpackDebian(): Promise<string | undefined> {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true, mode: 0o755 });
  const options = { cwd: draft, within: 120_000 };
  const run = (command: string, ...args: string[]) => runCommand(command, args, options);
  const download = () => run('apt-get', '-q', 'download', ...packages);
  try {
    let fetched = await download();
    if (fetched.code !== 0) {
      // A new machine has no package lists.
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

/** Finds Prometheus and Alertmanager on PATH or from Debian's packages. Throws an Error that says what is missing. */
export async function findPrograms(): Promise<PrometheusPrograms> {
  const found = onThePath();
  if (found) return found;
  let reason: string | undefined;
  if (!existsSync(folder) || !existsSync(texts))
    reason = canInstall() ? await unpackDebian() : 'this is not Debian, or not root';
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
