// Replaces @jest/globals. Before each test file, jest sets these globals (injectGlobals), and runtime.mjs sets jest.
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } = globalThis;
