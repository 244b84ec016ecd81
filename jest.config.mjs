export default {
  testMatch: ['**/*.test.ts'],
  // Slow tests run in `npm run proof`; tests that need Docker in `npm run test:compose` and `test:cluster`.
  testPathIgnorePatterns: ['/node_modules/', '/\\.local/', '/proof/', '/test/compose/', '/test/cluster/'],
  modulePathIgnorePatterns: ['/\\.local/'],
  watchman: false, // jest waits for it without a limit
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: './test/support/environment.mjs',
  runtime: '<rootDir>/test/support/runtime.mjs',
  transform: {},
  coverageProvider: 'v8',
  // Most tests wait for something: four files in parallel keep two cores busy.
  maxWorkers: 4,
  // The modules of earlier test files stay in memory.
  workerIdleMemoryLimit: '700MB',
  // At its end, a worker writes Node's compile cache: in a new clone for longer than jest's default of 500 ms.
  workerGracefulExitTimeout: 10_000,
  // A test that exceeds this limit hangs. Tests that need longer set their own limit.
  testTimeout: 60_000,
};
