// Sends a PING to Redis every millisecond from its own process and reports the latencies in ms: another client's slow
// command delays them.
import { Redis } from 'ioredis';

const redis = new Redis(process.env['REDIS_URL']!);
let times: number[] = [];
let timer: NodeJS.Timeout | undefined;

async function probe(): Promise<void> {
  const start = performance.now();
  await redis.ping();
  times.push(performance.now() - start);
}

process.on('message', (message: 'start' | 'stop') => {
  clearInterval(timer);
  if (message === 'start') {
    times = [];
    timer = setInterval(() => void probe(), 1);
  } else process.send!(times);
});
// The benchmark process has ended.
process.once('disconnect', () => process.exit());
