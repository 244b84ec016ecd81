import { chromium, type Browser } from 'playwright-core';
import { aptInstall, canInstall } from '../../deploy/local/apt.ts';
import { onPath } from '../../deploy/local/run-command.ts';

const find = () => onPath('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable');

/** Starts Chromium or Chrome from PATH, or installs Debian's Chromium. Throws an Error that says what is missing. */
export async function openBrowser(): Promise<Browser> {
  let program = find();
  if (!program && canInstall()) {
    await aptInstall(['chromium'], AbortSignal.timeout(170_000));
    program = find();
  }
  if (!program) throw new Error('There is no browser: put chromium or google-chrome on PATH.');
  return chromium.launch({
    executablePath: program,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
