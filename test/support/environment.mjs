import { ModuleMocker } from 'jest-mock';

/** Runs tests with Node's own globals instead of a context's; runtime.mjs loads their modules. */
export default class NodeItself {
  global = globalThis;
  moduleMocker = new ModuleMocker(globalThis);
  fakeTimers = null;
  fakeTimersModern = null;
  exportConditions = () => ['node'];
  getVmContext = () => null;
  setup() {}
  teardown() {}
}
