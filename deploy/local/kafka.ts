import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { aptInstall, canInstall } from './apt.ts';
import { containerSpec, hasImage } from './docker.ts';
import { findJava, javaEnv, mavenJars } from './maven-jars.ts';
import { freePort, HOST, listens } from './ports.ts';
import { Problem } from './problem.ts';
import { lastLines, runCommand } from './run-command.ts';
import type { State } from './state.ts';
import { portFor, type ServerContext, type StackContext } from './stores.ts';
import type { ProcessSpec } from './supervised.ts';
import type { Report } from './terminal.ts';

const kafkaJars = mavenJars('kafka', join(import.meta.dirname, 'kafka', 'pom.xml'), 'kafka_2.13');
const image = `apache/kafka:${kafkaJars.version}`;

const clusterId = 'local-kafka-0000000001';
const dataInContainer = '/var/lib/kafka/data';

/** Escapes a value of a properties file, which Java reads as ISO 8859-1. */
const escaped = (value: unknown): string =>
  String(value).replace(/[^ -[\]-~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

type PreparedKafka = { spec: ProcessSpec; brokers: string; version: string };

async function answers(broker: string): Promise<void> {
  await listens(broker); // kafkajs alone would retry for seconds before it fails
  const options = { logLevel: logLevel.NOTHING, connectionTimeout: 1_000, retry: { retries: 0 } };
  const admin = new Kafka({ brokers: [broker], ...options }).admin();
  try {
    await admin.connect();
    await admin.listTopics();
  } finally {
    await admin.disconnect();
  }
}

/** Starts Kafka; returns its brokers, or null without Kafka. @throws Problem if Kafka is required and cannot run */
export async function startKafka(context: StackContext, report: Report): Promise<string | null> {
  const { kafkaBrokers } = context.external;
  if (kafkaBrokers) {
    await Promise.any(kafkaBrokers.split(',').map((address) => listens(address.trim()))).catch(() => {
      throw new Problem(`KAFKA_BROKERS: nothing listens at ${kafkaBrokers}. Start it or unset the variable.`);
    });
    report(`at ${kafkaBrokers}`);
    return kafkaBrokers;
  }
  const prepared = await prepareKafka(context, report);
  if (typeof prepared !== 'string') {
    await context.up(prepared.spec);
    report(`${prepared.version} at ${prepared.brokers}`);
    return prepared.brokers;
  }
  if (context.needsKafka)
    throw new Problem(
      `There is no Kafka: ${prepared}. Install Java 17 and Maven, or start Docker. npm start also accepts KAFKA_BROKERS.`,
    );
  report(
    `unavailable (${prepared}); invalidation works by HTTP only. To use Kafka, install Java 17 (on PATH or in JAVA_HOME) and Maven, or start Docker so that "docker pull ${image}" works, or set KAFKA_BROKERS.`,
  );
  return null;
}

/** Chooses Java with Maven, Docker, or Debian packages. Returns the process, or the reason why Kafka cannot run. */
export async function prepareKafka(context: ServerContext, report: Report): Promise<PreparedKafka | string> {
  const { state, signal } = context;
  const port = await portFor(context, 9092);
  const withJava = async (): Promise<PreparedKafka | string> => {
    const java = await findJava(signal);
    if (!java) return 'there is no Java 17 or newer';
    if (!kafkaJars.classPath()) {
      report('downloading its jars with Maven');
      const failure = await kafkaJars.download(signal);
      if (failure) return failure;
    }
    report('');
    return javaKafka(context, java, port);
  };

  const found = await withJava();
  if (typeof found !== 'string') return found;
  if (await hasImage(image, signal)) {
    report('in Docker');
    return dockerKafka(state, port);
  }
  if (!canInstall()) return found;
  report('installing Java and Maven');
  for (const java of ['openjdk-17-jre-headless', 'default-jre-headless'])
    if (await aptInstall([java, 'maven'], signal)) return withJava();
  return found;
}

async function javaKafka(context: ServerContext, java: string, port: number): Promise<PreparedKafka> {
  const { state, signal, proxy } = context;
  const advertised = proxy ? await proxy('kafka', port) : port;
  const folder = state.path('kafka');
  const data = join(folder, 'data');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const properties = join(folder, 'server.properties');
  const values: Record<string, string | number> = {
    PORT: port,
    ADVERTISED_PORT: advertised,
    CONTROLLER_PORT: await freePort(),
    DATA: data,
  };
  const template = readFileSync(join(import.meta.dirname, 'kafka', 'server.properties'), 'utf8');
  writeFileSync(
    properties,
    template.replaceAll(/@([A-Z_]+)@/g, (_, name: string) => escaped(values[name])),
  );

  const logging = `-Dlog4j2.configurationFile=${join(import.meta.dirname, 'kafka', 'log4j2.properties')}`;
  const common = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', logging, '-cp', kafkaJars.classPath() ?? ''];
  if (!existsSync(join(data, 'meta.properties'))) {
    const tool = ['-Xmx128m', ...common, 'kafka.tools.StorageTool', 'format', '--ignore-formatted'];
    const limits = { signal, within: 120_000, env: javaEnv };
    const { code, output } = await runCommand(java, [...tool, '-t', clusterId, '-c', properties], limits);
    if (code !== 0) throw new Problem(`Kafka's data folder ${data} could not be created.`, lastLines(output));
  }
  const spec: ProcessSpec = {
    name: 'kafka',
    command: java,
    args: ['-Xmx256m', ...common, 'kafka.Kafka', properties],
    cwd: folder,
    env: () => javaEnv,
    ready: () => answers(`${HOST}:${port}`),
    readyWithinMs: 120_000,
    stopSignal: 'SIGTERM',
  };
  return { spec, brokers: `${HOST}:${advertised}`, version: kafkaJars.version };
}

function dockerKafka(state: State, port: number): PreparedKafka {
  const env = {
    KAFKA_NODE_ID: '1',
    KAFKA_PROCESS_ROLES: 'broker,controller',
    KAFKA_LISTENERS: `BROKER://:${port},CONTROLLER://:${port + 1}`,
    KAFKA_ADVERTISED_LISTENERS: `BROKER://${HOST}:${port}`,
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    KAFKA_INTER_BROKER_LISTENER_NAME: 'BROKER',
    KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
    KAFKA_CONTROLLER_QUORUM_VOTERS: `1@localhost:${port + 1}`,
    KAFKA_LOG_DIRS: dataInContainer,
    KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
    KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
    KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
    KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
    KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
  };
  const brokers = `${HOST}:${port}`;
  const container = { name: 'kafka', image, port, containerPort: port, env, dataFolder: dataInContainer };
  return { brokers, version: 'in Docker', spec: containerSpec(state, container, () => answers(brokers)) };
}
