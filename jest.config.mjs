export default {
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '/\\.local/'],
  modulePathIgnorePatterns: ['/\\.local/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': './test/support/transform.mjs' },
  coverageProvider: 'v8',
  maxWorkers: 2,
  // Generous: the tests share two cores with the stack that they test.
  testTimeout: 60_000,
};
