import { join } from 'node:path';
import { DOWNLOADS } from './config.ts';
import { CREDENTIALS_FILE } from './content-server/settings.ts';
import { DEMO_CLIENT, DEMO_PASSWORD, DEMO_USER_EMAIL, DEMO_USERS } from './demo-data.ts';
import { identityTour } from './identity-demo/demo.ts';
import type { Stack } from './stack-file.ts';

/** Returns the welcome text: URLs and commands to try. The commands work as printed. */
export function tour(stack: Stack, state: string, identityDemo: boolean): string[] {
  return [
    '',
    `Gateway        ${stack.gateway}`,
    `API docs       ${stack.gateway}/api/docs`,
    `Pulse          ${stack.gateway}/pulse   (the targets; sign in as sre@example.com)`,
    `Addresses      ${join(state, 'stack.json')}`,
    `Logs           ${join(state, 'logs', '<name>.log')}   (JSON)`,
    `Mails          ${join(state, 'mail', '*.eml')}   (nothing is delivered)`,
    '',
    `Accounts       ${DEMO_USERS.map(({ email }) => email).join(', ')}; password ${DEMO_PASSWORD}`,
    `Content server ${join(state, CREDENTIALS_FILE)}   (database URL and password of the role content_server)`,
    `Machine client ${DEMO_CLIENT.name}, secret ${DEMO_CLIENT.secret}`,
    '',
    'To try, in another terminal, in this folder:',
    '',
    ...tourCommands(stack, state).map((command) => `  ${command}`),
    '',
    ...(identityDemo ? identityTour(stack.gateway) : []),
    'Ctrl-C stops everything.',
    '',
  ];
}

/** Five bash commands, to paste one after the other. */
function tourCommands({ gateway, kafka }: Stack, state: string): string[] {
  const stackFile = state === DOWNLOADS ? '' : `STACK_FILE="${join(state, 'stack.json')}" `;
  const body = JSON.stringify({ email: DEMO_USER_EMAIL, password: DEMO_PASSWORD });
  const read = `curl -si ${gateway}/api/content/webform/12 -H "Authorization: Bearer $TOKEN"`;
  const edit = (title: string, via: string): string =>
    `${stackFile}npm run content-server -- edit webform 12 --title "${title}" --via ${via}`;
  return [
    `TOKEN=$(curl -s ${gateway}/api/login -H 'Content-Type: application/json' -d '${body}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`,
    read,
    edit('Hello', 'http'),
    edit('Hello again', kafka === null ? 'http' : 'kafka'),
    read,
  ];
}
