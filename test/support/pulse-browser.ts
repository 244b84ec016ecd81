import { readFileSync } from 'node:fs';
import type axeCore from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { newAddress } from './accounts.ts';
import { stack } from './stack.ts';

/** Opens a tab with its own client IP address. `wrong` lists errors of the page and requests to other hosts. */
export async function openTab(browser: Browser, options: BrowserContextOptions = {}) {
  const { gateway } = stack();
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    extraHTTPHeaders: { 'X-Forwarded-For': newAddress() },
    ...options,
  });
  const wrong: string[] = [];
  context.on('request', (request) => {
    if (!request.url().startsWith(`${gateway}/pulse`)) wrong.push(`asks for ${request.url()}`);
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => wrong.push(`throws ${error.message}`));
  page.on('console', (message) => {
    // The console logs the form's 401 or 403 as an error.
    if (message.type() === 'error' && !/status of 40[13]/.test(message.text())) wrong.push(message.text());
  });
  return { page, wrong, close: () => context.close() };
}

export type Watched = Awaited<ReturnType<typeof openTab>>;

export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.goto(`${stack().gateway}/pulse`);
  await page.fill('#email', email);
  await page.fill('#password', password);
  await page.click('#sign-in');
}

const axe = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Returns the serious and critical findings of axe-core as `rule: where`. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof axeCore };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  });
}
