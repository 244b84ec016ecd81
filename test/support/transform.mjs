import { stripTypeScriptTypes } from 'node:module';

// jest runs a test file as Node would: with its types taken out, every line and column where it was.
export default { process: (code) => ({ code: stripTypeScriptTypes(code) }) };
