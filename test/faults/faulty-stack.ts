import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createIdentityProvider } from '../../deploy/local/identity-demo/provider.ts';
import { freeRow } from '../support/ports.ts';
import { preparePostgres } from '../../deploy/local/postgres.ts';
import { portsOf, serviceSpec } from '../../deploy/local/service-process.ts';
import { serviceOf, services } from '@content-platform/contract';
import { randomSecret, type State } from '../../deploy/local/state.ts';
import { startCollector } from '../support/collector.ts';
import { startHttpServer } from '../support/http-server.ts';
import { client, type Person } from '../support/identity.ts';
import { returnTo } from '../support/identity-stack.ts';
import { startOwnStack } from '../support/own-stack.ts';
import { startRedis } from '../support/redis-server.ts';
import { startS3Server } from '../support/s3-server.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { stack } from '../support/stack.ts';
import { createProxies, type Proxies } from './proxies.ts';
import { startRestarted } from './restarted-process.ts';

export const person: Person = {
  subject: 'fay',
  name: 'Fay Fault',
  email: 'fay@example.com',
  emailVerified: true,
  suborgs: [],
};

/** A stack with a controllable fault for each dependency. */
export type FaultyStack = Awaited<ReturnType<typeof build>>;

async function startPostgres(disk: SmallDisk) {
  const path = (...parts: string[]) => join(disk.folder, ...parts);
  const state = { path, secrets: { postgresPassword: randomSecret() } } as State;
  const { signal } = new AbortController();
  const { spec, url } = await preparePostgres({ state, usualPorts: false, signal });
  return { url, server: await startRestarted(spec) };
}

/** Starts a second media-upload that stores its files in a bucket. */
async function startS3Media(proxies: Proxies, secretsFile: string, root: string, ends: AsyncDisposableStack) {
  const s3 = await startS3Server();
  ends.defer(() => s3.stop());
  const { port } = await proxies.start('s3', Number(new URL(s3.endpoint).port));
  const gatewayPort = await freeRow(services.length);
  const service = serviceOf('media-upload');
  const { postgres, logs, redis } = stack();
  const context = { postgres, logs, redis, kafka: '', media: join(root, 'media-s3'), secretsFile };
  const spec = serviceSpec(service, gatewayPort, context, proxies.ports());
  const process = await startRestarted({
    ...spec,
    env: () => ({
      ...spec.env!(),
      PUBLIC_URL: stack().gateway,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_BUCKET: s3.bucket,
      S3_ACCESS_KEY_ID: s3.accessKeyId,
      S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    }),
  });
  ends.defer(() => process.stop());
  return portsOf(service, gatewayPort)[0];
}

export async function startFaultyStack(): Promise<FaultyStack> {
  // disposeAsync continues after a failed step: the disks must be unmounted.
  const ends = new AsyncDisposableStack();
  try {
    return await build(ends);
  } catch (error) {
    await ends.disposeAsync();
    throw error;
  }
}

async function build(ends: AsyncDisposableStack) {
  const folder = mkdtempSync(join(tmpdir(), 'faults-'));
  ends.defer(() => rmSync(folder, { recursive: true, force: true }));
  const mount = (name: string, megabytes: number) => {
    const disk = mountSmallDisk(join(folder, name), megabytes);
    ends.defer(() => disk.unmount());
    return disk;
  };
  const disks: Partial<Record<'postgres' | 'redis' | 'media', SmallDisk>> = {
    postgres: mount('postgres', 512),
    redis: mount('redis', 64),
  };

  const { url, server: postgres } = await startPostgres(disks.postgres!);
  ends.defer(() => postgres.stop());
  const redis = await startRedis({ dir: disks.redis!.folder, appendonly: 'yes', maxmemory: '32mb' });
  ends.defer(() => redis.stop());

  const proxies = createProxies();
  ends.defer(() => proxies.close());
  const collector = await startCollector();
  ends.defer(() => collector.stop());
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = collector.environment;
  const traces = await proxies.start('collector', Number(new URL(endpoint).port));
  // Port 1 is a placeholder: the provider starts later, because its redirect URI contains the gateway's URL.
  const identity = await proxies.start('identity', 1);
  const issuer = `http://127.0.0.1:${identity.port}`;
  Object.assign(process.env, collector.environment, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${traces.port}`,
    IDENTITY_ISSUER: issuer,
    IDENTITY_CLIENT_ID: client.id,
    IDENTITY_CLIENT_SECRET: client.secret,
    IDENTITY_RETURN_TO: returnTo,
  });

  const own = await startOwnStack(undefined, {
    external: { databaseUrl: url, redisUrl: redis.url },
    proxy: async (name, port) => (await proxies.start(name, port)).port,
    prepare: (state) => (disks.media = mountSmallDisk(join(state, 'media'), 64)),
  });
  // The disk is unmounted first: own.stop() deletes the folder that contains it.
  ends.defer(() => own.stop());
  ends.defer(() => disks.media!.unmount());

  const redirectUri = `${stack().gateway}/api/identity/login/callback`;
  const provider = await startHttpServer(
    createIdentityProvider({ issuer, client: { ...client, redirectUri }, people: [person] }),
  );
  ends.defer(() => provider.close());
  await proxies.redirect('identity', Number(new URL(provider.origin).port));

  const s3Media = await startS3Media(proxies, join(own.folder, 'secrets.json'), folder, ends);
  const { port: usualMedia } = new URL(stack().services['media-upload']!.public);
  return {
    proxies,
    postgres,
    redis,
    collector,
    disks: disks as Required<typeof disks>,
    /** Switches the uploads between S3 and the local folder. */
    useS3: (yes: boolean) => proxies.redirect('media-upload', yes ? s3Media : Number(usualMedia)),
    stop: () => ends.disposeAsync(),
  };
}
