export default {
  testMatch: ['**/*.test.ts'],
  // What takes minutes is for `npm run proof`, what needs Docker for `npm run test:compose` and `test:cluster`.
  testPathIgnorePatterns: ['/node_modules/', '/\\.local/', '/proof/', '/test/compose/', '/test/cluster/'],
  modulePathIgnorePatterns: ['/\\.local/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': './test/support/transform.mjs' },
  coverageProvider: 'v8',
  // Most tests wait for something: three files at a time keep two cores busy.
  maxWorkers: 3,
  // A limit that means "hung". A test that needs more says so.
  testTimeout: 60_000,
};
