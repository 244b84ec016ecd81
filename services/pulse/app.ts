import * as contract from '@content-platform/contract';
import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import { createContext, type PulseDeps } from './context.ts';
import { pulseAsset } from './endpoints/pulse-asset.ts';
import { pulse, pulseRetry, pulseSignIn, pulseSignOut } from './endpoints/pulse.ts';

export function createPulse({ metrics, ...deps }: PulseDeps & Omit<ServiceOptions, 'name'>) {
  const context = createContext(deps);
  return createService({ name: 'pulse', tokens: deps.tokens, logger: deps.logger, metrics }, [
    handle(contract.pulse, pulse(context)),
    handle(contract.pulseSignIn, pulseSignIn(context)),
    handle(contract.pulseSignOut, pulseSignOut(context)),
    handle(contract.pulseRetry, pulseRetry(context)),
    handle(contract.pulseAsset, pulseAsset()),
  ]);
}
