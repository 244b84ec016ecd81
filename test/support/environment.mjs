import vm from 'node:vm';

// In the context that jest creates, each use of a global such as Buffer calls back into Node. The tests of contract,
// gateway/guard and pulse took 74 s of CPU in such contexts and 43 s in ordinary ones.
const { createContext } = vm;
vm.createContext = (_object, options) => createContext(vm.constants.DONT_CONTEXTIFY, options);

export { TestEnvironment as default } from 'jest-environment-node';
