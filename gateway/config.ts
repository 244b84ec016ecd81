import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { portOf, services, urlVariable, type ServiceName } from '@content-platform/contract';
import {
  commonConfig,
  type ConfigOf,
  flag,
  list,
  redisUrl,
  serviceUrl,
  tokenConfig,
} from '@content-platform/chassis';

const originsForm = 'origins such as https://app.example.com, separated by commas';
/** Accepts pages inside an app, too: URL has no origin for the scheme of Capacitor, `capacitor://localhost`. */
const isOrigin = (text: string) => /^[a-z]+:\/\/localhost$/.test(text) || URL.parse(text)?.origin === text;
const networksForm = 'networks such as 10.0.0.0/8, separated by commas';
/** Refuses IPv4 networks written as IPv6: clients' addresses are converted to IPv4, so none of them would match. */
const isNetwork = (value: string) => ipaddr.isValidCIDR(value) && !/^::ffff:/i.test(value);
const scaleForm = 'a number from 0 to 1000 with at most three decimals';
const httpUrlForm = 'a URL starting with http://, with a port up to 64535';
/** A service's internal listener has a port 1000 above the public one. */
function isHttpUrl(value: string): boolean {
  const url = URL.parse(value);
  return url?.protocol === 'http:' && Number(url.port) <= 64_535;
}

type UpstreamName = Exclude<ServiceName, 'gateway'>;
const upstreams = services.map(({ name }) => name).filter((name) => name !== 'gateway');

/** URLs of services must be http: the gateway opens no TLS connections to them. */
function upstreamUrl(name: UpstreamName) {
  const schema = name === 'auth' ? tokenConfig.AUTH_URL : serviceUrl(name);
  return schema.refine(isHttpUrl, httpUrlForm).describe(`${schema.description!}; gateway: \`http://\` only`);
}
const upstreamConfig = Object.fromEntries(
  upstreams.map((name) => [urlVariable(name), upstreamUrl(name)]),
) as Record<ReturnType<typeof urlVariable<UpstreamName>>, ReturnType<typeof upstreamUrl>>;

export const gatewayConfig = {
  ...commonConfig(portOf('gateway')),
  ...tokenConfig,
  ...upstreamConfig,
  REDIS_URL: redisUrl,
  CORS_ORIGINS: list(z.string().refine(isOrigin, originsForm))
    .default([])
    .describe(
      'Origins whose web pages may call the API, separated by commas, for example https://app.example.com; empty: none',
    ),
  TRUSTED_PROXIES: list(z.string().refine(isNetwork, networksForm))
    .default([])
    .describe(
      'Networks of the proxies in front of the gateway whose X-Forwarded-For is trusted, as CIDRs separated by commas, for example 10.0.0.0/8; empty: none',
    ),
  HSTS_INCLUDE_SUBDOMAINS: flag().describe(
    'Whether browsers use only https for the subdomains of the host in `PUBLIC_URL`, too, for a year: `true` or `false`. Set it only if every subdomain has https',
  ),
  RATE_LIMIT_SCALE: z
    .string(scaleForm)
    .regex(/^(\d{1,3}(\.\d{1,3})?|1000)$/, scaleForm)
    .transform(Number)
    .default(1)
    .describe(
      'Factor of the rate limits, 0 to 1000 with at most three decimals; 0 switches them off. Limits of passwords and second factors do not change, those of identity logins do',
    ),
};

export const serviceUrlsOf = (config: ConfigOf<typeof gatewayConfig>): Record<string, string> =>
  Object.fromEntries(upstreams.map((name) => [name, config[urlVariable(name)]]));
