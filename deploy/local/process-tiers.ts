import type { ProcessSpec, Supervised, SupervisorContext } from './supervised.ts';
import { supervise } from './supervised.ts';

/** In the order in which they stop: a caller before the processes that it calls. */
const tierNames = ['gateway', 'services', 'stores'] as const;
export type Tier = (typeof tierNames)[number];

/** Three tiers, one after the other, end within 10 s. */
const graceMs = 3_000;

/** The stack's processes, in tiers. */
export interface ProcessTiers {
  /** Starts a process and keeps it running; resolves when it is ready. */
  up: (tier: Tier, spec: ProcessSpec) => Promise<void>;
  /** The process's pid as it is now; 0 when it is not running. */
  pidOf: (name: string) => number;
  /** Stops every process; resolves when all have ended. */
  stop: () => Promise<void>;
}

export function createProcessTiers(context: SupervisorContext): ProcessTiers {
  const processes: { tier: Tier; supervised: Supervised }[] = [];
  return {
    async up(tier, spec) {
      context.signal.throwIfAborted();
      const supervised = supervise(spec, context);
      processes.push({ tier, supervised });
      await supervised.start();
    },
    pidOf: (name) => processes.find(({ supervised }) => supervised.name === name)?.supervised.pid ?? 0,
    async stop() {
      for (const name of tierNames) {
        const inTier = processes.filter(({ tier }) => tier === name);
        await Promise.all(inTier.map(({ supervised }) => supervised.stop(graceMs)));
      }
    },
  };
}
