import {
  addressSettings,
  type Service,
  type ServiceName,
  serviceOf,
  services,
  type Store,
} from '@content-platform/contract';
import { finishKeySecretRotation, readSecrets } from './key-secret.ts';
import { derivedSecret, type Secrets } from './state.ts';

/** The parts of a stack that a process needs for its settings. */
export interface ServiceContext {
  postgres: string;
  logs: string;
  redis: string;
  /** Kafka brokers; empty without Kafka. */
  kafka: string;
  /** Folder for uploaded files. */
  media: string;
  /** Networks whose X-Forwarded-For the gateway trusts. */
  trustedProxies?: string | undefined;
  /** Settings of the auth service for an identity service. */
  identity?: Record<string, string> | undefined;
  /** Settings of the auth service for mails. */
  mail?: Record<string, string> | undefined;
  /** Returns the URL of a process's listener. */
  urlOf: (name: ServiceName, listener: 'public' | 'internal') => string;
  /** Returns the URL of a store with the user of the service; without it the process gets the URLs above. */
  asUser?: ((name: ServiceName, url: string) => string) | undefined;
  /** Read at each start, because `npm run admin -- rotate-key-secret` changes the secrets. Empty: the process gets none. */
  secretsFile: string;
}

const storeVariable: Record<Store, string> = {
  postgres: 'DATABASE_URL',
  redis: 'REDIS_URL',
  kafka: 'KAFKA_BROKERS',
};

function ownSettings(name: ServiceName, context: ServiceContext): Record<string, string> {
  if (name === 'gateway' && context.trustedProxies !== undefined)
    return { TRUSTED_PROXIES: context.trustedProxies };
  if (name === 'auth') {
    const secrets = readSecrets(context.secretsFile);
    const pairs = services
      .filter(({ hasSecret }) => hasSecret)
      .map((one) => `${one.name}:${serviceSecret(one.name, secrets)}`);
    const { identity, mail } = context;
    return {
      AUTH_KEY_SECRET: secrets.authKeySecret,
      SERVICE_SECRETS: pairs.join(','),
      ...identity,
      ...mail,
    };
  }
  return {
    ...(name === 'media-upload' && { MEDIA_FOLDER: context.media }),
    ...(serviceOf(name).hasSecret &&
      context.secretsFile && { SERVICE_SECRET: serviceSecret(name, readSecrets(context.secretsFile)) }),
  };
}

/** Returns the secret with which auth gives a service tokens for internal listeners. */
export const serviceSecret = (name: ServiceName, secrets: Secrets): string =>
  derivedSecret(secrets, `service ${name}`);

/** Returns the environment of a service without HOST, PORT and PUBLIC_URL. */
export function environmentOf(service: Service, context: ServiceContext): Record<string, string> {
  const { name } = service;
  const { asUser = (_, url) => url } = context;
  const { postgres, redis } = context;
  const stores = { ...context, postgres: asUser(name, postgres), redis: asUser(name, redis) };
  return {
    LOGS_DATABASE_URL: asUser(name, context.logs),
    ...Object.fromEntries(service.stores.map((store) => [storeVariable[store], stores[store]])),
    ...addressSettings(service, context.urlOf),
    ...ownSettings(name, context),
  };
}

/** Main file of a service, relative to the repository. */
export const mainOf = ({ name }: Service): string =>
  name === 'gateway' ? 'gateway/main.ts' : `services/${name}/main.ts`;

/** Prepares a service before each start. */
export async function prepare({ name }: Service, { postgres, secretsFile }: ServiceContext): Promise<void> {
  if (name === 'auth') await finishKeySecretRotation(postgres, secretsFile);
}
