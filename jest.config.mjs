export default {
  testMatch: ['**/*.test.ts'],
  // Tests that take minutes run in `npm run proof`; tests that need Docker in `npm run test:compose` and
  // `test:cluster`.
  testPathIgnorePatterns: ['/node_modules/', '/\\.local/', '/proof/', '/test/compose/', '/test/cluster/'],
  modulePathIgnorePatterns: ['/\\.local/'],
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: './test/support/environment.mjs',
  transform: { '\\.ts$': './test/support/transform.mjs' },
  coverageProvider: 'v8',
  // Most tests wait for something: three files in parallel keep two cores busy.
  maxWorkers: 3,
  // A test that exceeds this limit hangs. Tests that need longer set their own limit.
  testTimeout: 60_000,
};
