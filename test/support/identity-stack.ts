import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { environmentWith } from '../../deploy/local/config.ts';
import { freeRow } from './ports.ts';
import { addressesOf, serviceSpec } from '../../deploy/local/service-process.ts';
import { serviceOf, services } from '@content-platform/contract';
import type { ProcessSpec } from '../../deploy/local/supervised.ts';
import { client, startIdentityProvider, type Person } from './identity.ts';
import { stack } from './stack.ts';
import { until } from './wait.ts';

export const returnTo = 'https://app.example.com/signed-in';

async function start({ command, args, cwd, env, name, ready }: ProcessSpec): Promise<ChildProcess> {
  const child = spawn(command, args, { cwd, env: environmentWith(env?.() ?? {}), stdio: 'ignore' });
  await until(`${name} is ready`, () => ready().then(() => true));
  return child;
}

/**
 * Starts a second gateway and auth service on the stack's stores, with an identity provider for `people`. `stack()`
 * then returns them. `disabled` is the stack's gateway, which has no identity provider.
 */
export async function startIdentityStack(people: readonly Person[], backchannelLogoutUri?: string) {
  const file = process.env['STACK_FILE']!;
  const mainStack = stack();
  const port = await freeRow(services.length);
  const { gateway, services: addresses } = addressesOf(port);
  const provider = await startIdentityProvider(
    `${gateway}/api/identity/login/callback`,
    people,
    backchannelLogoutUri,
  );
  const context = {
    ...mainStack,
    kafka: '',
    media: join(dirname(file), 'media'),
    secretsFile: join(dirname(file), 'secrets.json'),
    identity: {
      IDENTITY_ISSUER: provider.issuer,
      IDENTITY_CLIENT_ID: client.id,
      IDENTITY_CLIENT_SECRET: client.secret,
      IDENTITY_RETURN_TO: returnTo,
    },
  };
  const specs = [serviceOf('gateway'), serviceOf('auth')].map((service) =>
    serviceSpec(service, port, context),
  );
  const running = await Promise.all(specs.map(start));
  const folder = mkdtempSync(join(tmpdir(), 'identity-stack-'));
  const ownStack = { ...mainStack, gateway, services: { ...mainStack.services, ...addresses } };
  writeFileSync(join(folder, 'stack.json'), JSON.stringify(ownStack), { mode: 0o600 });
  process.env['STACK_FILE'] = join(folder, 'stack.json');
  return {
    gateway,
    disabled: mainStack.gateway,
    async stop() {
      const ends = running.map((child) => new Promise((resolve) => child.once('exit', resolve)));
      for (const child of running) child.kill('SIGTERM');
      await Promise.all(ends);
      provider.close();
      process.env['STACK_FILE'] = file;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
