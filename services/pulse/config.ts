import { internalPortOffset, portOf, services } from '@content-platform/contract';
import { commonConfig, list, readConfig, serviceUrl, tokenConfig, url } from '@content-platform/chassis';

const internal = services.map(({ port }) => `http://127.0.0.1:${port + internalPortOffset}`);
const page = url('http:', 'https:')
  .transform((value) => value.replace(/\/+$/, ''))
  .optional();

export const pulseConfig = {
  ...commonConfig(portOf('pulse')),
  ...tokenConfig,
  CONTENT_CACHE_URL: serviceUrl('content-cache'),
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
