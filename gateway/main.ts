import { createRedis, run, tokensFromAuth } from '@content-platform/chassis';
import { endpoints } from '@content-platform/contract';
import { createGateway } from './app.ts';
import { gatewayConfig, serviceUrlsOf } from './config.ts';
import { createGatewayMetrics } from './metrics.ts';
import { createRateLimits } from './guard/rate-limit.ts';
import { gracePeriodMs, serverOptions } from './timeouts.ts';

await run('gateway', gatewayConfig, async (process) => {
  const { config, logger, slowLog, onStop } = process;
  const services = serviceUrlsOf(config);
  const metrics = createGatewayMetrics(process.metrics, endpoints, Object.keys(services));
  const redis = createRedis(config.REDIS_URL, logger);
  onStop(() => redis.disconnect());
  const tokens = tokensFromAuth(process);
  const { app, configureServer, stop } = createGateway({
    publicUrl: config.PUBLIC_URL,
    services,
    tokens,
    limits: createRateLimits(redis, endpoints, config.RATE_LIMIT_SCALE, metrics, logger),
    hstsIncludeSubdomains: config.HSTS_INCLUDE_SUBDOMAINS,
    corsOrigins: config.CORS_ORIGINS,
    trustedProxies: config.TRUSTED_PROXIES,
    slowRequestMs: config.SLOW_REQUEST_MS,
    logger,
    metrics,
    slowLog,
  });
  onStop(stop);
  return {
    app,
    configureServer,
    server: serverOptions,
    gracePeriodMs,
    checks: {
      tokens: tokens.check,
      // Without Redis, this process counts the limits alone: degraded, but ready.
      redis: { required: false, check: () => redis.ping() },
    },
  };
});
