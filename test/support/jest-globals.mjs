// Stands in for @jest/globals: runtime.mjs sets these before each test file.
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } = globalThis;
