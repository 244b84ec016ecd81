// Loads test files as Node does: packages once in each of jest's workers, the project's modules for each test file. jest
// itself would load all of them for each test file, in a context of its own, which took about a quarter more CPU.
import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import JestRuntime from 'jest-runtime';

const require = createRequire(import.meta.url);
const root = new URL('../../', import.meta.url).href;
const jestGlobals = new URL('jest-globals.mjs', import.meta.url).href;

let file = 0;
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier === '@jest/globals' ? jestGlobals : specifier, context);
    const own = resolved.url.startsWith(root) && !resolved.url.includes('/node_modules/');
    return own && !resolved.url.includes('?')
      ? { ...resolved, url: `${resolved.url}?file=${file}` }
      : resolved;
  },
});

export default class NativeRuntime extends JestRuntime {
  #env = { ...process.env };

  /** Loads the part of jest that runs tests, with a state of its own for each test file. */
  requireInternalModule(path) {
    delete require.cache[path];
    delete globalThis[Symbol.for('EVENT_HANDLERS')];
    delete globalThis[Symbol.for('TEST_TIMEOUT_SYMBOL')];
    return require(path);
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule(path) {
    file += 1;
    // jest would look up each line of each stack in source maps; Node's type stripping keeps lines and columns.
    delete Error.prepareStackTrace;
    globalThis.jest = this.jestGlobals.jestObjectFor(path);
    await import(pathToFileURL(path).href);
  }

  teardown() {
    this.restoreAllMocks();
    for (const name of Object.keys(process.env)) if (!(name in this.#env)) delete process.env[name];
    Object.assign(process.env, this.#env);
    super.teardown();
  }
}
