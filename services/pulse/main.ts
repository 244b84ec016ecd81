import { connectDatabase, run, tokensFromAuth } from '@content-platform/chassis';
import { createPulse } from './app.ts';
import { pulseConfig } from './config.ts';
import { startSampler } from './sampling/sampler.ts';
import { createSlowLogStore } from './slow-log-store.ts';

await run('pulse', pulseConfig, async (process) => {
  const { config, logger, metrics, onStop } = process;
  const { LOGS_DATABASE_URL: url } = config;
  // Queries are limited to the time that a page waits for its parts.
  const limits = { maxConnections: 2, statementTimeoutMs: 2_000 };
  const logs = url && connectDatabase(process, url, limits);
  const sampler = startSampler(config.INTERNAL_URLS);
  onStop(() => sampler.close());
  const tokens = tokensFromAuth(process);
  return {
    app: createPulse({
      publicUrl: config.PUBLIC_URL,
      authUrl: config.AUTH_URL,
      contentCacheUrl: config.CONTENT_CACHE_URL,
      alertmanagerUrl: config.ALERTMANAGER_URL,
      links: { grafana: config.GRAFANA_URL, jaeger: config.JAEGER_URL },
      sampler,
      slowLog: logs ? createSlowLogStore(logs) : undefined,
      tokens,
      logger,
      metrics,
    }),
    checks: {
      tokens: tokens.check,
      ...(logs ? { logs: { required: false, check: () => logs.ping() } } : {}),
    },
  };
});
