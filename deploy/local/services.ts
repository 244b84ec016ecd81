import { finishKeySecretRotation, readSecrets } from './key-secret.ts';

/** What a process may need to know of the others. */
export interface Surrounding {
  postgres: string;
  logs: string;
  redis: string;
  /** Brokers; empty when there is no Kafka. */
  kafka: string;
  /** The folder for uploaded files. */
  media: string;
  /** Networks whose X-Forwarded-For the gateway believes. */
  trustedProxies?: string | undefined;
  /** What auth is told of an identity service. */
  identity?: Record<string, string> | undefined;
  /** The public address of each process, by its name. */
  urls: Record<string, string>;
  /** The address of each process's internal listener. */
  internalUrls: Record<string, string>;
  /** Read at each start: `npm run admin -- rotate-key-secret` changes one. */
  secretsFile: string;
}

export interface Service {
  name: string;
  main: string;
  /** Its port is the gateway's plus this. */
  offset: number;
  /** What it needs beside HOST, PORT, PUBLIC_URL, LOGS_DATABASE_URL, AUTH_URL and AUTH_INTERNAL_URL, which all have. */
  environment: (around: Surrounding) => Record<string, string>;
  /** What has to be done before each start. */
  prepare?: (around: Surrounding) => Promise<void>;
}

/** Every process of the platform: a new service is one more entry here. */
export const SERVICES: Service[] = [
  {
    name: 'gateway',
    main: 'gateway/main.ts',
    offset: 0,
    environment: ({ redis, urls, trustedProxies }) => ({
      REDIS_URL: redis,
      CONTENT_CACHE_URL: urls['content-cache'] ?? '',
      MEDIA_UPLOAD_URL: urls['media-upload'] ?? '',
      DEVICES_URL: urls['devices'] ?? '',
      LETTERS_URL: urls['letters'] ?? '',
      PULSE_URL: urls['pulse'] ?? '',
      ...(trustedProxies !== undefined && { TRUSTED_PROXIES: trustedProxies }),
    }),
  },
  {
    name: 'auth',
    main: 'services/auth/main.ts',
    offset: 1,
    environment: ({ postgres, redis, identity, internalUrls, secretsFile }) => ({
      DATABASE_URL: postgres,
      DEVICES_INTERNAL_URL: internalUrls['devices'] ?? '',
      REDIS_URL: redis,
      AUTH_KEY_SECRET: readSecrets(secretsFile).authKeySecret,
      ...identity,
    }),
    prepare: ({ postgres, secretsFile }) => finishKeySecretRotation(postgres, secretsFile),
  },
  {
    name: 'content-cache',
    main: 'services/content-cache/main.ts',
    offset: 2,
    environment: ({ postgres, redis, kafka }) => ({
      DATABASE_URL: postgres,
      REDIS_URL: redis,
      KAFKA_BROKERS: kafka,
    }),
  },
  {
    name: 'media-upload',
    main: 'services/media-upload/main.ts',
    offset: 3,
    environment: ({ postgres, media }) => ({ DATABASE_URL: postgres, MEDIA_FOLDER: media }),
  },
  {
    name: 'devices',
    main: 'services/devices/main.ts',
    offset: 4,
    environment: ({ postgres }) => ({ DATABASE_URL: postgres }),
  },
  {
    name: 'letters',
    main: 'services/letters/main.ts',
    offset: 5,
    environment: ({ postgres }) => ({ DATABASE_URL: postgres }),
  },
  {
    name: 'pulse',
    main: 'services/pulse/main.ts',
    offset: 6,
    environment: ({ urls, internalUrls }) => ({
      CONTENT_CACHE_URL: urls['content-cache'] ?? '',
      INTERNAL_URLS: Object.values(internalUrls).join(','),
    }),
  },
];
