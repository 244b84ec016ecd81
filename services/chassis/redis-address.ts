export interface HostPort {
  host: string;
  port: number;
}

export interface RedisAccess {
  username?: string;
  password?: string;
  /** Node's TLS options, with the default checks; absent: no TLS. */
  tls?: Record<string, never>;
}

/**
 * - single: one server; ioredis parses `url` itself.
 * - sentinel: the primary that the sentinels know as `name`.
 * - cluster: a Redis Cluster with some of its nodes.
 */
export type RedisAddress =
  | { form: 'single'; url: string }
  | { form: 'sentinel'; sentinels: HostPort[]; name: string; access: RedisAccess }
  | { form: 'cluster'; nodes: HostPort[]; access: RedisAccess };

export const redisForms =
  "redis://host:6379, redis-sentinel://host:26379,host:26379/<primary's name> or redis-cluster://host:6379,host:6379, each with user:password@ where needed, and as rediss… for TLS";

const severalHosts =
  /^redis(?<tls>s?)-(?<form>sentinel|cluster):\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?#]+)(?:\/(?<name>[^/?#]*))?$/;
const oneHost = /^(?:\[(?<six>[\d:a-f]+)\]|(?<host>[^\s:[\]]+))(?::(?<port>\d{1,5}))?$/i;

function hostsOf(text: string, defaultPort: number): HostPort[] {
  return text.split(',').map((one) => {
    const { six, host, port } = oneHost.exec(one.trim())?.groups ?? {};
    const number = Number(port ?? defaultPort);
    if (!(six ?? host) || number < 1 || number > 65_535) throw new Error(redisForms);
    return { host: (six ?? host)!, port: number };
  });
}

/** Parses the three forms of REDIS_URL, with user and password percent-encoded. Throws for any other form. */
export function parseRedisUrl(text: string): RedisAddress {
  if (/^rediss?:\/\//.test(text) && URL.canParse(text)) return { form: 'single', url: text };
  const { form, tls, user, password, hosts, name } = severalHosts.exec(text)?.groups ?? {};
  const isSentinel = form === 'sentinel';
  // The path is the primary's name: required for sentinels, not allowed for a cluster.
  if (!hosts || isSentinel !== Boolean(name)) throw new Error(redisForms);
  const access: RedisAccess = {
    ...(user ? { username: decodeURIComponent(user) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(tls ? { tls: {} } : {}),
  };
  return isSentinel
    ? { form: 'sentinel', sentinels: hostsOf(hosts, 26_379), name: decodeURIComponent(name!), access }
    : { form: 'cluster', nodes: hostsOf(hosts, 6_379), access };
}

/** Returns the login for sentinels: user `default`, Redis's password. A sentinel without a password accepts any. */
export function sentinelLogin({ password }: RedisAccess): RedisAccess {
  return password ? { username: 'default', password } : {};
}
