import { type ProcessSpec, supervise, type Supervised, type SupervisorContext } from './supervised.ts';

/** Tiers in the order in which they stop: callers before the processes that they call. */
const tierNames = ['gateway', 'services', 'stores'] as const;
type Tier = (typeof tierNames)[number];

/** Grace period per tier: three tiers, stopped one after the other, end within 10 s. */
const graceMs = 3_000;

export function createProcessTiers(context: SupervisorContext) {
  const processes: { tier: Tier; supervised: Supervised }[] = [];
  return {
    async up(tier: Tier, spec: ProcessSpec): Promise<void> {
      context.signal.throwIfAborted();
      const supervised = supervise(spec, context);
      processes.push({ tier, supervised });
      await supervised.start();
    },
    pidOf: (name: string): number =>
      processes.find(({ supervised }) => supervised.name === name)?.supervised.pid ?? 0,
    async stop(): Promise<void> {
      for (const name of tierNames) {
        const inTier = processes.filter(({ tier }) => tier === name);
        await Promise.all(inTier.map(({ supervised }) => supervised.stop(graceMs)));
      }
    },
  };
}
