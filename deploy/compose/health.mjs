// Health check of a container: asks the internal listener of its process.
import { internalPortOffset } from '@content-platform/contract/services';

const port = Number(process.env.PORT) + internalPortOffset;
const answer = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: AbortSignal.timeout(2_500) });
process.exit(answer.ok ? 0 : 1);
