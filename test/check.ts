// `npm run check`: types, lint, format, generated files and lock file.
import { createTerminal } from '../deploy/local/terminal.ts';
import { untilStopped } from '../deploy/local/until-stopped.ts';
import { runChecks } from './checks.ts';

await untilStopped(async (signal) => {
  const { passed, failed } = await runChecks(createTerminal(), signal);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}, 1);
