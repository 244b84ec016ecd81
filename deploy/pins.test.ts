import { beforeEach, expect, test } from '@jest/globals';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { temporaryFolder } from '../test/support/temporary-folder.ts';
import { ROOT } from './local/config.ts';
import { runCommand } from './local/run-command.ts';
import { compose } from './testing/compose.ts';

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));

/** Runs a script with a stand-in for a program, which is a shell script. */
function runWith(program: string, script: string, path: string, ...args: string[]) {
  writeFileSync(join(folder, program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const env = { PATH: `${folder}${delimiter}${process.env['PATH']}`, IMAGE_TAG: '1.2.3' };
  return runCommand(process.execPath, [join(ROOT, 'deploy', path), ...args], { env, cwd: folder });
}

const pinImages = 'compose/pin-images.ts';
const written = 'docker-compose.digests.yml';
const digest = `sha256:${'0a'.repeat(32)}`;

test('pins every image of the stack and an override, and the base of images that it builds', async () => {
  const { code } = await runWith('docker', `echo ${digest}`, pinImages, 'deploy/compose/images.yml');
  expect(code).toBe(0);
  const { services } = parse(readFileSync(join(folder, written), 'utf8')) as typeof compose;
  expect(Object.keys(services)).toEqual(Object.keys(compose.services));
  for (const each of Object.values(services)) expect(JSON.stringify(each)).toContain(`@${digest}`);
  expect(services).toMatchObject({
    redis: { image: `redis:8.6.3-trixie@${digest}` },
    gateway: { image: expect.stringContaining(`/content-platform/gateway:1.2.3@${digest}`) },
    demo: { build: { args: { NODE_IMAGE: `node:24.21.0-bookworm-slim@${digest}` } } },
  });
});

test('writes no override if the registry does not answer', async () => {
  const { code, output } = await runWith('docker', 'echo "no such host" >&2; exit 1', pinImages);
  expect(code).toBe(1);
  expect(output).toBe(
    '  no such host\nThe digest of node:24.21.0-bookworm-slim cannot be read: check Docker and the network.\n',
  );
  expect(existsSync(join(folder, written))).toBe(false);
});

test('adds the integrity of the registry to the lock file and reports what it does not have', async () => {
  const lock = join(folder, 'package-lock.json');
  const integrity = `sha512-${'a'.repeat(86)}==`;
  const packages = {
    '': {},
    'node_modules/@a/held': { version: '1.0.0' },
    'node_modules/b/node_modules/gone': { version: '2.0.0' },
    'node_modules/linked': { link: true },
  };
  writeFileSync(lock, JSON.stringify({ packages }));
  const npm = `[ "$2" = @a/held@1.0.0 ] && echo '"${integrity}"' || exit 1`;
  const { code, output } = await runWith('npm', npm, 'local/lock-integrity.ts');
  expect([code, output]).toEqual([
    1,
    'npm found no integrity of gone@2.0.0: check the network and the registry.\nadded 1, missing 1\n',
  ]);
  expect(JSON.parse(readFileSync(lock, 'utf8'))).toEqual({
    packages: { ...packages, 'node_modules/@a/held': { version: '1.0.0', integrity } },
  });
});
