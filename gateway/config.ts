import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import type { ServiceName } from '@content-platform/contract';
import { commonConfig, list, readConfig, redisUrl, tokenConfig, url } from '@content-platform/chassis';

const origins = 'origins such as https://app.example.com, separated by commas';
const networks = 'networks such as 10.0.0.0/8, separated by commas';
const scale = 'a number from 0 to 1000';

/** What the gateway reads. */
export const gatewayConfig = {
  ...commonConfig(8080),
  ...tokenConfig,
  CONTENT_CACHE_URL: url('http:', 'https:')
    .default('http://127.0.0.1:8082')
    .describe('The content-cache service'),
  MEDIA_UPLOAD_URL: url('http:', 'https:')
    .default('http://127.0.0.1:8083')
    .describe('The media-upload service'),
  DEVICES_URL: url('http:', 'https:').default('http://127.0.0.1:8084').describe('The devices service'),
  LETTERS_URL: url('http:', 'https:').default('http://127.0.0.1:8085').describe('The letters service'),
  PULSE_URL: url('http:', 'https:').default('http://127.0.0.1:8086').describe('The pulse service'),
  REDIS_URL: redisUrl,
  CORS_ORIGINS: list(
    z.string().refine((value) => URL.canParse(value) && new URL(value).origin === value, origins),
  )
    .default([])
    .describe('Origins whose pages may call the API, separated by commas; empty: none'),
  TRUSTED_PROXIES: list(z.string().refine((value) => ipaddr.isValidCIDR(value), networks))
    .default([])
    .describe(
      'Networks of the proxies in front, as CIDRs separated by commas, whose X-Forwarded-For is believed',
    ),
  RATE_LIMIT_SCALE: z
    .string(scale)
    .regex(/^(\d{1,3}(\.\d{1,3})?|1000)$/, scale)
    .transform(Number)
    .default(1)
    .describe('Multiplies the rate limits; 0: off. Limits on guessing passwords stay as they are'),
};

/** Where each service is. */
export function addressesOf(config: GatewayConfig): Record<Exclude<ServiceName, 'gateway'>, string> {
  return {
    auth: config.AUTH_URL,
    'content-cache': config.CONTENT_CACHE_URL,
    'media-upload': config.MEDIA_UPLOAD_URL,
    devices: config.DEVICES_URL,
    letters: config.LETTERS_URL,
    pulse: config.PULSE_URL,
  };
}

export type GatewayConfig = ReturnType<typeof readGatewayConfig>;

export function readGatewayConfig() {
  return readConfig(gatewayConfig, process.env);
}
