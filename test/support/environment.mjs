import { ModuleMocker } from 'jest-mock';

/** Gives tests Node's own globals. jest's environment would create a VM context; runtime.mjs loads modules without one. */
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
