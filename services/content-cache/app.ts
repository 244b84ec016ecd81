import * as contract from '@content-platform/contract';
import { createService, handle, type ServiceOptions } from '@content-platform/chassis';
import { clearModel, clearPattern, listInvalidations, type ClearDeps } from './endpoints/clears.ts';
import { listChanges, listContent, readContent, type ContentDeps } from './endpoints/content.ts';
import {
  deleteFailedJob,
  deleteFailedJobs,
  listFailedJobClasses,
  listFailedJobs,
  readFailedJob,
  retryFailedJob,
  retryFailedJobs,
  type FailedJobDeps,
} from './endpoints/failed-jobs.ts';
import type { InvalidationLog } from './invalidation-log.ts';

type Deps = Omit<ServiceOptions, 'name'> & ContentDeps & ClearDeps & FailedJobDeps & { log: InvalidationLog };

export function createContentCacheApp(deps: Deps) {
  return createService({ ...deps, name: 'content-cache' }, [
    handle(contract.readContent, readContent(deps)),
    handle(contract.listContent, listContent(deps)),
    handle(contract.listChanges, listChanges(deps)),
    handle(contract.clearModel, clearModel(deps)),
    handle(contract.clearPattern, clearPattern(deps)),
    handle(contract.listInvalidations, listInvalidations(deps.log)),
    handle(contract.retryFailedJobs, retryFailedJobs(deps)),
    handle(contract.listFailedJobs, listFailedJobs(deps)),
    handle(contract.listFailedJobClasses, listFailedJobClasses(deps)),
    handle(contract.readFailedJob, readFailedJob(deps)),
    handle(contract.deleteFailedJob, deleteFailedJob(deps)),
    handle(contract.deleteFailedJobs, deleteFailedJobs(deps)),
    handle(contract.retryFailedJob, retryFailedJob(deps)),
  ]);
}
