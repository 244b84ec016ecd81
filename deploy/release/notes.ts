// Prints the notes of a release, its section of CHANGELOG.md: node deploy/release/notes.ts v0.1.0
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

function refuse(message: string): never {
  console.error(message);
  process.exit(1);
}

const version = process.argv[2]?.replace(/^v/, '') ?? '';
const patterns = ['{gateway,services/*,clients/*}/package.json', 'clients/*/composer.json'];
for (const file of ['package.json', ...globSync(patterns, { cwd: root })]) {
  for (const [, found] of read(file).matchAll(/"(?:version|@content-platform\/\w+)": "([^"]*)"/g))
    if (found !== version) refuse(`The tag is v${version}, but ${file} has version ${found}.`);
}
const overlay = 'deploy/kubernetes/overlays/production/kustomization.yaml';
for (const [, found] of read(overlay).matchAll(/newTag: (\S+)/g))
  if (found !== version) refuse(`The tag is v${version}, but ${overlay} has newTag ${found}.`);
const sections = read('CHANGELOG.md').split(/^## /m);
const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
if (!section) refuse(`CHANGELOG.md has no section for ${version}.`);
console.log(section.slice(section.indexOf('\n')).trim());
