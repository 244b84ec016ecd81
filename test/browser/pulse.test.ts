import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { updateLetterSkippedWebform } from '@content-platform/contract';
import { emails, newUser, password } from '../support/accounts.ts';
import { openBrowser } from '../support/chromium.ts';
import { announce, closeEvents } from '../support/events.ts';
import { newFailedJob } from '../support/failed-jobs.ts';
import { read } from '../support/platform.ts';
import { findings, openTab, signIn, type Watched } from '../support/pulse-browser.ts';
import { readPulse } from '../support/pulse.ts';
import { closeRecords, database } from '../support/records.ts';
import { sendSlowRequest } from '../support/slow-request.ts';
import { stack } from '../support/stack.ts';
import { until } from '../support/wait.ts';

const retryOf = (job: number) => `form[action="/pulse/failed-jobs/${job}/retry"] button`;

const cards = {
  response_time_p95: /Response time.*\d m?s.*under 500 ms/s,
  invalidation_queue: /Invalidation queue\s+\d+\s.*under 100/s,
  failed_jobs: /Failed jobs\s+[1-9]\d*\s+✗ missed/,
  hit_ratio: /Cache hits\s+\d+(\.\d)? %.*over 80 %/s,
  cache_memory: /Cache memory\s+\d/,
  routes: /POST \/api\/updateLetterSkippedWebform\s+\d/,
  'slow-requests': /POST \/api\/updateLetterSkippedWebform\s+\d+\s+\d/,
  'slow-queries': /letters\s.*letters\.letter/s,
  jobs: /not_json Job \d+: .+\s+\d+\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s/,
  cache: /pathway\s+\d+\s+\d+\s+\d+\s+\d+/,
  processes: /gateway.*✓ up\s+\d.*\s\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s/s,
};

let browser: Browser;
let tabs: Watched[] = [];

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const tab = await openTab(browser, options);
  tabs.push(tab);
  return tab.page;
}

async function openSignedIn(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await open(options);
  await signIn(page, emails.sre, password);
  await isSignedIn(page);
  return page;
}

/** Waits for the page and its style; a form with an error fails with its text. */
async function isSignedIn(page: Page): Promise<void> {
  await page.waitForSelector('.verdict, .narrow [role=alert]');
  await page.waitForLoadState();
  expect(await page.locator('.narrow [role=alert]').allTextContents()).toEqual([]);
}

/** Creates a failed job of a class that no other test creates or retries on this stack: the page shows the newest. */
const makeFailedJob = (error = 'as it was') => newFailedJob('invalid_event', error);

beforeAll(async () => {
  browser = await openBrowser();
  await Promise.all(Array.from({ length: 120 }, (_, index) => read('pathway', 1 + (index % 4))));
  await announce('not json <b>bold</b>');
  await until('pulse has seen it', async () => {
    await sendSlowRequest();
    const { slow, failed_jobs: jobs, targets, routes } = await readPulse();
    const valueOf = (wanted: string) => targets.find(({ name }) => name === wanted)!.value;
    const request = slow?.requests.some(({ route }) => route === updateLetterSkippedWebform.path);
    const query = slow?.queries.some(({ statement }) => statement.includes('letters.letter'));
    const isKnown = valueOf('hit_ratio') !== null && valueOf('failed_jobs')! > 0;
    return request && query && jobs?.length && routes.length && isKnown;
  });
}, 180_000);
afterEach(async () => {
  const wrong = tabs.flatMap((tab) => tab.wrong);
  await Promise.all(tabs.map((tab) => tab.close()));
  tabs = [];
  expect(wrong).toEqual([]);
});
afterAll(async () => {
  await browser?.close();
  await closeEvents();
  await closeRecords();
});

test('signs in with the keyboard alone, and signs out', async () => {
  const page = await open();
  await page.goto(`${stack().gateway}/pulse`);
  // A loaded page may not have its focus yet; earlier keystrokes are lost.
  await page.waitForSelector('#email:focus');
  await page.keyboard.type(emails.sre);
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Tab');
  const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
  expect(outline).toBe('solid');
  await page.keyboard.press('Enter');
  await isSignedIn(page);
  const [cookie] = await page.context().cookies(`${stack().gateway}/pulse`);
  expect(cookie).toMatchObject({ name: 'pulse', httpOnly: true, sameSite: 'Strict', path: '/pulse' });
  await page.focus('#sign-out');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#email');
  expect(await page.context().cookies(`${stack().gateway}/pulse`)).toEqual([]);
});

describe('the page', () => {
  test('each card shows real traffic, and five targets a line', async () => {
    const page = await openSignedIn();
    const expected = Object.entries(cards).map(([id, text]) => [id, expect.stringMatching(text)]);
    await until('each card shows it', async () => {
      const texts = Object.keys(cards).map(async (id) => [id, await page.innerText(`#${id}`)]);
      const shown = await Promise.all(texts);
      // The cards have few rows. On a busy machine, other slow requests and queries may be newer.
      if (Object.values(cards).some((text, index) => !text.test(shown[index]![1]!))) await sendSlowRequest();
      expect(shown).toEqual(expected);
      return true;
    });
    await until('there are two samples', async () => (await page.locator('.tiles svg.line').count()) === 5);
  });

  test('retries a failed job; its error is text, and a long word in it displaces no button', async () => {
    const job = await makeFailedJob(`<b>${'y'.repeat(500)}`);
    const page = await openSignedIn();
    const button = (await page.locator(retryOf(job)).boundingBox())!;
    expect(button.x + button.width).toBeLessThan(1280);
    expect(await page.locator('#jobs b').count()).toBe(0);
    await page.click(retryOf(job));
    await page.waitForSelector(`text=Job ${job} was processed.`);
    expect(await page.locator(retryOf(job)).count()).toBe(0);
    const { rows } = await database().query('SELECT state FROM content.failed_job WHERE id = $1', [job]);
    expect(rows).toEqual([{ state: 'retried' }]);
    // The page's script removes the outcome from the URL.
    await page.waitForURL(({ search }) => search === '');
    await page.reload();
    await page.waitForSelector('.verdict');
    expect(await page.locator(`text=Job ${job} was processed.`).count()).toBe(0);
  });

  test('refreshes itself and keeps focus and scroll position', async () => {
    const job = await makeFailedJob();
    const page = await openSignedIn({ viewport: { width: 360, height: 500 } });
    await page.focus(retryOf(job));
    const at = await page.textContent('#at');
    const isScrolled = 'scrollY > 0 && document.querySelector("#jobs-table").scrollLeft > 0';
    expect(await page.evaluate(isScrolled)).toBe(true);
    await page.evaluate('(globalThis.announced = document.querySelector("#verdict")).textContent = ""');
    const other = await makeFailedJob();
    // The refresh also replaces the part with the focus.
    await page.waitForSelector(retryOf(other));
    await until('the sample is newer', async () => (await page.textContent('#at')) !== at);
    expect(await page.evaluate('announced.isConnected && announced.textContent')).toMatch(/[a-z]/);
    expect(await page.evaluate(`${isScrolled} && document.activeElement.id`)).toBe('retry-invalid_event');
    await page.route('**/pulse', (route) => route.fulfill({ status: 300 })); // No error in the console.
    await page.waitForSelector('#stale');
    expect(await page.title()).toBe('outdated – Pulse');
    await page.click('#pause');
    await until('it is paused', async () => (await page.title()) === 'paused – Pulse');
  });

  test('works and refreshes without scripts', async () => {
    const page = await openSignedIn({ javaScriptEnabled: false });
    expect(await page.innerText('#routes')).toMatch(/ \/api\/\S+\s+\d/);
    const at = await page.textContent('#at');
    await until('it was loaded again', async () => (await page.textContent('#at')) !== at);
  });
});

test('a link from another site shows the page to a signed-in user, and the login form to others', async () => {
  const link = `<a id="link" href="${stack().gateway}/pulse">how is it?</a>`;
  const known = await openSignedIn();
  const follow = async (page: Page) => {
    await page.goto('about:blank');
    await page.setContent(link);
    await page.click('#link');
  };
  await follow(known);
  await known.waitForSelector('.verdict');
  const stranger = await open();
  await follow(stranger);
  await stranger.waitForSelector('head:not(:has(meta[http-equiv])) ~ body #email');
});

test('nothing is wider than a screen of 360 pixels; on wide screens the cards leave no gaps', async () => {
  const page = await openSignedIn({ viewport: { width: 360, height: 740 } });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  const gapsNow = () =>
    page.evaluate<number>(`(() => {
    const between = parseFloat(getComputedStyle(document.querySelector('.cards')).gap);
    const grown = (card) => {
      const { width, height } = card.getBoundingClientRect();
      return (width + between) * (height + between);
    };
    const { width, height } = document.querySelector('.cards').getBoundingClientRect();
    const covered = [...document.querySelectorAll('.cards > *')].reduce((sum, card) => sum + grown(card), 0);
    return 1 - covered / ((width + between) * (height + between));
  })()`);
  for (const width of [1280, 1920, 2560]) {
    await page.setViewportSize({ width, height: 1_000 });
    expect([width, await gapsNow()]).toEqual([width, expect.closeTo(0, 3)]);
    const main = (await page.locator('main').boundingBox())!;
    expect(main.width).toBeGreaterThan(width - 60);
  }
});

test('axe-core finds nothing serious, in light and in dark', async () => {
  const page = await open();
  async function check() {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([colorScheme, await findings(page)]).toEqual([colorScheme, []]);
    }
  }
  await page.goto(`${stack().gateway}/pulse`);
  await check();
  const user = await newUser();
  await signIn(page, user.email, user.password);
  await page.waitForSelector('[role=alert]');
  await check();
  await signIn(page, emails.sre, password);
  await page.waitForSelector('.verdict');
  await check();
});
