import { addressSettings, type Service, type ServiceName } from '@content-platform/contract';

/** Returns the URL of a service's listener. */
export type UrlOf = (name: ServiceName, listener: 'public' | 'internal') => string;

/** The settings of a service: its port, its addresses, and the files of its secrets in `folder`. */
export function settingsOf(service: Service, urlOf: UrlOf, folder: string): Record<string, string> {
  const { port, stores, hasSecret } = service;
  return {
    PORT: String(port),
    ...addressSettings(service, urlOf),
    ...(stores.includes('postgres') && { DATABASE_URL_FILE: `${folder}/database-url` }),
    LOGS_DATABASE_URL_FILE: `${folder}/logs-database-url`,
    ...(hasSecret && { SERVICE_SECRET_FILE: `${folder}/service-secret` }),
    ...(stores.includes('redis') && { REDIS_URL_FILE: `${folder}/redis-url` }),
  };
}
