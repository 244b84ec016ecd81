// `npm run pin-images [-- <override>…]`: writes docker-compose.digests.yml, a Compose override that names each image by
// its digest, those of the given overrides too.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { environmentWith, ROOT } from '../local/config.ts';
import { Problem } from '../local/problem.ts';
import { lastLines, runCommand } from '../local/run-command.ts';
import { untilStopped } from '../local/until-stopped.ts';

const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');

/** Returns the image with the digest of its tag for all platforms. @throws Problem without the registry or Docker */
async function pin(name: string, signal: AbortSignal): Promise<string> {
  const settings = environmentWith({});
  const image = name.replace(/\$\{(\w+).*?\}/g, (text, setting: string) => settings[setting] ?? text);
  const args = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}'];
  const { code, output } = await runCommand('docker', args, { signal, within: 60_000 });
  const digest = /^sha256:[0-9a-f]{64}$/m.exec(output)?.[0];
  if (code === 0 && digest) return `${image}@${digest}`;
  throw new Problem(
    `The digest of ${image} cannot be read: check Docker and the network.`,
    lastLines(output, 3),
  );
}

await untilStopped(async (signal) => {
  const services: Record<string, { image?: string }> = {};
  for (const file of ['docker-compose.yml', ...process.argv.slice(2)]) {
    // Without the warnings about Compose's own tags.
    const parsed = parse(read(file), { merge: true, logLevel: 'error' }) as { services: typeof services };
    for (const [name, service] of Object.entries(parsed.services))
      services[name] = { ...services[name], ...service };
  }
  const base = /^ARG NODE_IMAGE=(\S+)$/m.exec(read('deploy', 'Dockerfile'))![1]!;
  const pinned = new Map<string, string>();
  for (const image of new Set(Object.values(services).map((service) => service.image ?? base)))
    pinned.set(image, await pin(image, signal));
  const overrides = Object.entries(services).map(([name, { image }]) => [
    name,
    image ? { image: pinned.get(image) } : { build: { args: { NODE_IMAGE: pinned.get(base) } } },
  ]);
  const options = { lineWidth: 0, aliasDuplicateObjects: false };
  const text = stringify({ services: Object.fromEntries(overrides) }, options);
  writeFileSync('docker-compose.digests.yml', text);
  return 0;
}, 1);
