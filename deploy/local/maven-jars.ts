import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DOWNLOADS, environmentWith } from './config.ts';
import { lastLines, onPath, runCommand } from './run-command.ts';

const copyDependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
/** Java reads paths on its command line in the encoding of the locale, which is ASCII without a locale. */
export const javaEnv = { LC_ALL: 'C.UTF-8' };

/** Path of Java 17 or newer, from JAVA_HOME or PATH. */
export async function findJava(signal: AbortSignal): Promise<string | undefined> {
  const home = environmentWith({}).JAVA_HOME;
  for (const file of [home && join(home, 'bin', 'java'), onPath('java')]) {
    if (!file || !existsSync(file)) continue;
    const { output } = await runCommand(file, ['-version'], { signal, within: 10_000 });
    if (Number(/version "(\d+)/.exec(output)?.[1] ?? 0) >= 17) return file;
  }
  return undefined;
}

/** Manages the jars that the file `pom` depends on, in a folder named after `name` and the version of `artifact`. */
export function mavenJars(name: string, pom: string, artifact: string) {
  const [, found] = readFileSync(pom, 'utf8').split(`${artifact}</artifactId>`, 2);
  const version = /<version>([^<]+)/.exec(found ?? '')?.[1] ?? '';
  const folder = join(DOWNLOADS, `${name}-${version}`);

  return {
    version,
    /** Returns the class path in a stable order; undefined until the jars are downloaded. */
    classPath(): string | undefined {
      if (!existsSync(folder)) return undefined;
      const jars = readdirSync(folder).toSorted();
      return jars.map((jar) => join(folder, jar)).join(':');
    },
    /** Downloads the jars; returns the reason of a failure. Concurrent downloads are safe: each has its own draft. */
    async download(signal: AbortSignal): Promise<string | undefined> {
      const maven = onPath('mvn');
      if (!maven) return 'there is no Maven (mvn)';
      mkdirSync(DOWNLOADS, { recursive: true, mode: 0o700 });
      const draft = `${folder}.${process.pid}`;
      const target = ['-DincludeScope=runtime', `-DoutputDirectory=${draft}`];
      const args = ['-q', '-B', '-f', pom, copyDependencies, ...target];
      try {
        const { code, output } = await runCommand(maven, args, { signal, within: 170_000, env: javaEnv });
        const cause = /^\[ERROR\] (.+)/m.exec(output)?.[1] ?? lastLines(output, 1)[0]!;
        if (code !== 0) return `Maven could not download it (${cause.slice(-200) || 'not within 170 s'})`;
        if (!existsSync(folder)) renameSync(draft, folder);
        return undefined;
      } finally {
        rmSync(draft, { recursive: true, force: true });
      }
    },
  };
}
