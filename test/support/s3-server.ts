import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findJava, mavenJars } from '../../deploy/local/maven-jars.ts';
import { freePort } from '../../deploy/local/ports.ts';
import { startServer } from './server.ts';
import { until } from './wait.ts';

const configFolder = join(import.meta.dirname, 's3');
const jars = mavenJars('s3proxy', join(configFolder, 'pom.xml'), 's3proxy');
const flags = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/** Returns the command of S3Proxy. Throws without Java 17, or without Maven to download it. */
async function commandLine(settings: string): Promise<[string, string[]]> {
  const { signal } = new AbortController();
  const java = await findJava(signal);
  if (!java) throw new Error('there is no Java 17 or newer');
  const failure = jars.classPath() ? undefined : await jars.download(signal);
  if (failure) throw new Error(failure);
  const logging = `-Dlogback.configurationFile=${join(configFolder, 'logback.xml')}`;
  const main = ['-cp', jars.classPath()!, 'org.gaul.s3proxy.Main', '--properties', settings];
  return [java, [...flags, logging, ...main]];
}

/** Starts a real S3 server (S3Proxy) for one test, which verifies signatures. It has one empty bucket. */
export async function startS3Server() {
  const folder = await mkdtemp(join(tmpdir(), 's3-'));
  const [bucket, accessKeyId, secretAccessKey] = ['uploads', 'test-key-id', 'a secret key of the tests'];
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  await mkdir(join(folder, 'data', bucket), { recursive: true });
  const settings = {
    's3proxy.endpoint': endpoint,
    's3proxy.authorization': 'aws-v4',
    's3proxy.identity': accessKeyId,
    's3proxy.credential': secretAccessKey,
    'jclouds.provider': 'filesystem-nio2',
    'jclouds.filesystem.basedir': join(folder, 'data'),
  };
  const file = join(folder, 's3proxy.properties');
  const lines = Object.entries(settings).map((line) => line.join('='));
  await writeFile(file, lines.join('\n'));
  const { child, stop } = await startServer(...(await commandLine(file)), endpoint);
  return {
    endpoint,
    bucket,
    accessKeyId,
    secretAccessKey,
    /** The folder of the bucket: a file here is an object. */
    folder: join(folder, 'data', bucket),
    /** The server hangs and its connections stay open, until `resume`. */
    async pause(): Promise<void> {
      child.kill('SIGSTOP');
      // Until then, other threads of Java still answer.
      const state = () => execFileSync('ps', ['-o', 'state=', '-p', String(child.pid)]);
      await until('S3 is stopped', () => state().toString().startsWith('T'));
    },
    resume: () => void child.kill('SIGCONT'),
    async stop(): Promise<void> {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
