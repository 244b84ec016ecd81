// `npm run lock-integrity`: adds the missing `integrity` of packages to package-lock.json, from the registry.
import { readFileSync, writeFileSync } from 'node:fs';
import { runCommand } from './run-command.ts';
import { untilStopped } from './until-stopped.ts';

/** `name`: the package behind an alias. */
type Locked = { name?: string; version?: string; link?: true; integrity?: string };

const file = 'package-lock.json';

await untilStopped(async (signal) => {
  const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Locked> };
  const missing = Object.entries(lock.packages).filter(
    ([path, { link, integrity }]) => path.includes('node_modules/') && !link && !integrity,
  );
  for (const [path, locked] of missing) {
    const name = `${locked.name ?? path.split('node_modules/').at(-1)}@${locked.version}`;
    const args = ['view', name, 'dist.integrity', '--json', '--loglevel=silent'];
    const { output } = await runCommand('npm', args, { signal, within: 60_000 });
    const found = /^\s*"(sha512-[\w+/]{86}==)"\s*$/.exec(output)?.[1];
    if (found) locked.integrity = found;
    else console.error(`npm found no integrity of ${name}: check the network and the registry.`);
  }
  const unknown = missing.filter(([, { integrity }]) => !integrity).length;
  if (unknown < missing.length) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`added ${missing.length - unknown}, missing ${unknown}`);
  return unknown === 0 ? 0 : 1;
}, 1);
