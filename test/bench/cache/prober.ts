// Sends a Redis a PING every millisecond, from a process of its own, and tells how long the answers took, in ms: who waits
// is behind somebody else's command.
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
// The bench is gone.
process.once('disconnect', () => process.exit());
