import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, environmentWith } from './config.ts';
import { lastLines, onPath, runCommand } from './run-command.ts';

const FOLDER = join(import.meta.dirname, 'kafka');
const PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

/** The version in pom.xml. */
export const kafkaVersion = (): string =>
  /kafka_2\.13<\/artifactId>\s*<version>([^<]+)/.exec(readFileSync(join(FOLDER, 'pom.xml'), 'utf8'))?.[1] ??
  '';

/** Where the jars are, once they have been downloaded as a whole. */
const jarFolder = (): string => join(DOWNLOADS, `kafka-${kafkaVersion()}`);

/** The class path, in an order that stays the same; undefined while the jars are not there. */
export function classPath(): string | undefined {
  const folder = jarFolder();
  if (!existsSync(folder)) return undefined;
  return readdirSync(folder)
    .toSorted()
    .map((jar) => join(folder, jar))
    .join(':');
}

/** Java 17 or newer: JAVA_HOME's or the one on PATH. */
export async function findJava(signal: AbortSignal): Promise<string | undefined> {
  const home = environmentWith({}).JAVA_HOME;
  for (const file of [home && join(home, 'bin', 'java'), onPath('java')]) {
    if (!file || !existsSync(file)) continue;
    const { output } = await runCommand(file, ['-version'], { signal, within: 10_000 });
    if (Number(/version "(\d+)/.exec(output)?.[1] ?? 0) >= 17) return file;
  }
  return undefined;
}

/**
 * Has Maven download the jars of pom.xml. Two stacks may do so at once: each into a folder of its own, which gets
 * the right name when it is complete.
 * @returns why it did not work; undefined when the jars are there
 */
export async function downloadJars(signal: AbortSignal): Promise<string | undefined> {
  const maven = onPath('mvn');
  if (!maven) return 'there is no Maven (mvn)';
  mkdirSync(DOWNLOADS, { recursive: true, mode: 0o700 });
  const draft = `${jarFolder()}.${process.pid}`;
  const args = [
    '-q',
    '-B',
    '-f',
    join(FOLDER, 'pom.xml'),
    PLUGIN,
    '-DincludeScope=runtime',
    `-DoutputDirectory=${draft}`,
  ];
  try {
    const { code, output } = await runCommand(maven, args, { signal, within: 170_000 });
    if (code !== 0) return `Maven could not download it (${lastLines(output, 1)[0]?.slice(0, 200)})`;
    if (!existsSync(jarFolder())) renameSync(draft, jarFolder());
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
