import { internalPortOffset, portOf, services } from '@content-platform/contract';
import { baseUrl, commonConfig, list, serviceUrl, tokenConfig, url } from '@content-platform/chassis';

const internal = services.map(({ port }) => `http://127.0.0.1:${port + internalPortOffset}`);
const page = baseUrl().optional();

export const pulseConfig = {
  ...commonConfig(portOf('pulse')),
  ...tokenConfig,
  CONTENT_CACHE_URL: serviceUrl('content-cache'),
  INTERNAL_URLS: list(url('http:'))
    .default(internal)
    .describe(
      'URLs of the internal listeners that /pulse shows, separated by commas; each IP address of a name is one process',
    ),
  GRAFANA_URL: page.describe('URL of Grafana for a link; unset: no link'),
  ALERTMANAGER_URL: page.describe(
    'URL of Alertmanager, which /pulse asks whether alerts have a receiver; unset: /pulse does not show whether they have',
  ),
  JAEGER_URL: page.describe('URL of Jaeger for links to traces; unset: no links'),
};
