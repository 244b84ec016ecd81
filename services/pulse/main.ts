import { createDatabase, run, tokensFromAuth } from '@content-platform/chassis';
import { createPulse } from './app.ts';
import { readPulseConfig } from './config.ts';
import { startSampler } from './sampling/sampler.ts';
import { createSlowLogStore } from './slow-log-store.ts';

await run('pulse', readPulseConfig, async (process) => {
  const { config, logger, metrics, slowLog, onStop } = process;
  const { LOGS_DATABASE_URL: url, SLOW_QUERY_MS: slowQueryMs } = config;
  // Queries are limited to the time that a page waits for its parts.
  const limits = { maxConnections: 2, statementTimeoutMs: 2_000 };
  const logs = url && createDatabase({ url, logger, metrics, slowLog, slowQueryMs, ...limits });
  if (logs) onStop(() => logs.close());
  const sampler = startSampler(config.INTERNAL_URLS);
  onStop(() => sampler.close());
  const tokens = tokensFromAuth(process);
  return {
    app: createPulse({
      publicUrl: config.PUBLIC_URL,
      authUrl: config.AUTH_URL,
      contentCacheUrl: config.CONTENT_CACHE_URL,
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
