/** Each alert of `deploy/prometheus/rules`, and the dashboard that shows what it rests on. */
export const dashboardOfAlert: Record<string, string> = {
  ServiceDown: 'service',
  ServiceRestarts: 'service',
  ErrorRateHigh: 'gateway',
  ApiLatencyP95High: 'gateway',
  AvailabilityBurnFast: 'gateway',
  AvailabilityBurnSlow: 'gateway',
  LatencyBurnFast: 'gateway',
  LatencyBurnSlow: 'gateway',
  SlowQueries: 'slow-log',
  CacheHitRatioLow: 'cache',
  CacheMemoryHigh: 'stores',
  InvalidationQueueLong: 'cache',
  InvalidationConsumerStalled: 'cache',
  InvalidationsMissed: 'cache',
  FailedJobs: 'cache',
  MetricMissing: 'service',
};
