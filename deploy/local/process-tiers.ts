import type { ProcessSpec, Supervised, SupervisorContext } from './supervised.ts';
import { supervise } from './supervised.ts';

/** Tiers in the order in which they stop: callers before the processes that they call. */
const tierNames = ['gateway', 'services', 'stores'] as const;
type Tier = (typeof tierNames)[number];

/** Grace period per tier: three tiers, stopped one after the other, end within 10 s. */
const graceMs = 3_000;

/** The stack's processes, in tiers. */
export interface ProcessTiers {
  /** Starts a process and keeps it running; resolves when it is ready. */
  up: (tier: Tier, spec: ProcessSpec) => Promise<void>;
  /** Returns the current pid of the process; 0 if it is not running. */
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
