import { commonConfig, list, readConfig, tokenConfig, url } from '@content-platform/chassis';

const internal = [8080, 8081, 8082, 8083, 8084, 8085, 8086].map((port) => `http://127.0.0.1:${port + 1000}`);
const page = url('http:', 'https:')
  .transform((value) => value.replace(/\/+$/, ''))
  .optional();

export const pulseConfig = {
  ...commonConfig(8086),
  ...tokenConfig,
  CONTENT_CACHE_URL: url('http:', 'https:')
    .default('http://127.0.0.1:8082')
    .describe('The content-cache service'),
  INTERNAL_URLS: list(url('http:'))
    .default(internal)
    .describe(
      'Internal listeners that are looked at, separated by commas; each address that a name has is one process',
    ),
  GRAFANA_URL: page.describe('Grafana, for a link to it'),
  JAEGER_URL: page.describe('Jaeger, for links to its traces'),
};

/** Throws ConfigError. */
export function readPulseConfig() {
  return readConfig(pulseConfig, process.env);
}
