// Loads test files as Node does: packages and the contract once in each of jest's workers, the project's other modules for
// each test file. jest itself would load everything for each test file, in a context of its own, which took a quarter more
// CPU.
import { readFileSync } from 'node:fs';
import { createRequire, registerHooks, stripTypeScriptTypes } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import JestRuntime from 'jest-runtime';

const require = createRequire(import.meta.url);
const root = new URL('../../', import.meta.url).href;
const jestGlobals = new URL('jest-globals.mjs', import.meta.url).href;
/** The contract is loaded once, because it has no state and imports no other code of the project. */
const isContract = (url) => url.startsWith(`${root}services/contract/`) && !url.includes('.test.');

let file = 0;
const sources = new Map();
const resolutions = new Map();

/** Resolves an import of the project once, because each test file loads the same modules again. */
function resolveOnce(specifier, context, next) {
  const parent = context.parentURL?.split('?')[0] ?? '';
  if (!parent.startsWith(root) || parent.includes('/node_modules/')) return next(specifier, context);
  const key = `${parent} ${specifier}`;
  const resolved = resolutions.get(key) ?? { ...next(specifier, context), shortCircuit: true };
  resolutions.set(key, resolved);
  return resolved;
}

registerHooks({
  resolve(specifier, context, next) {
    const resolved = resolveOnce(specifier === '@jest/globals' ? jestGlobals : specifier, context, next);
    const { url } = resolved;
    const isOwn = url.startsWith(root) && !url.includes('/node_modules/') && !url.includes('?');
    return isOwn && !isContract(url) ? { ...resolved, url: `${url}?file=${file}` } : resolved;
  },
  load(url, context, next) {
    const path = url.split('?')[0];
    if (!path.startsWith(root) || !path.endsWith('.ts')) return next(url, context);
    if (!sources.has(path)) {
      const sourceUrl = fileURLToPath(path);
      // jest shortens and highlights paths in stacks, but not URLs. A syntax error also names this path.
      sources.set(path, stripTypeScriptTypes(readFileSync(sourceUrl, 'utf8'), { sourceUrl }));
    }
    return { format: 'module', source: sources.get(path), shortCircuit: true };
  },
});

export default class NativeRuntime extends JestRuntime {
  #env = { ...process.env };
  #exit = process.exit;

  /** jest would replace process.getBuiltinModule. */
  installGetBuiltinModule() {}

  /** Loads the part of jest that runs tests, with a state of its own for each test file. */
  requireInternalModule(path) {
    delete require.cache[path];
    for (const name of ['EVENT_HANDLERS', 'TEST_TIMEOUT_SYMBOL', 'RETRY_TIMES'])
      delete globalThis[Symbol.for(name)];
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
    // jest has wrapped it for this file.
    process.exit = this.#exit;
    for (const name of Object.keys(process.env)) if (!(name in this.#env)) delete process.env[name];
    Object.assign(process.env, this.#env);
    super.teardown();
  }
}
