import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { startSandbox } from '../../../src/compose/sandbox.ts';

// Opens the pages at /docs in Chromium: measures them, checks them with axe-core (WCAG 2.2 A and AA) in light and
// dark, wide and narrow, navigates the reference by keyboard, sends a signed request from it, and takes screenshots.
//
// CHROMIUM=/usr/bin/chromium node test/support/inspector/measure-docs-pages.ts
//
// Exits with 1 if a check fails.

const root = join(import.meta.dirname, '..', '..');
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const screenshots = join(root, 'docs', 'screenshots');

const faults: string[] = [];

function expectThat(isTrue: boolean, what: string): void {
  if (!isTrue) faults.push(what);
}

const pages = [
  { name: 'reference', path: '/docs', ready: 'h1' },
  { name: 'operation', path: '/docs#/wallets/walletRpc', ready: '.operation h1' },
  { name: 'event', path: '/docs#/webhooks/onIntentAuthorized', ready: '.operation h1' },
  { name: 'guide', path: '/docs/guides/first-request', ready: 'h1' },
];

const looks = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  { name: 'narrow', colorScheme: 'light', viewport: { width: 390, height: 844 } },
];

async function openPage(browser: Browser, options: object): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
  const page = await context.newPage();
  page.on('console', (message) => {
    // The browser also reports requests that are expected to fail.
    if (message.type() === 'error' && !message.text().includes('status of 401'))
      faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', ({ message }) => faults.push(`error in a page: ${message}`));
  return { context, page };
}

/** Measures the milliseconds until a page shows its content, and the transferred bytes, with an empty cache. */
async function measure(browser: Browser, baseUrl: string): Promise<void> {
  for (const { name, path, ready } of pages) {
    const { context, page } = await openPage(browser, {});
    const startMs = performance.now();
    await page.goto(baseUrl + path);
    await page.waitForSelector(ready);
    const tookMs = Math.round(performance.now() - startMs);
    const bytes = await page.evaluate<number>(
      `performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0)`,
    );
    const heap = await page.evaluate<number>('Math.round(performance.memory.usedJSHeapSize / 1e6)');
    console.log(`${name}: usable after ${tookMs} ms, ${bytes} bytes, heap ${heap} MB`);
    expectThat(tookMs < 2_000, `${name}: usable after ${tookMs} ms`);
    await context.close();
  }
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Checks the pages. Their policy would refuse axe-core as a script, so the policy is bypassed here. */
async function look(browser: Browser, baseUrl: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true });
  for (const { name: lookName, ...options } of looks) {
    for (const { name, path, ready } of pages) {
      const { context, page } = await openPage(browser, { ...options, bypassCSP: true });
      await page.goto(baseUrl + path);
      await page.waitForSelector(ready);
      const isShown = name === 'operation' || (name !== 'event' && lookName === 'light');
      if (isShown) await page.screenshot({ path: join(screenshots, `docs-${name}-${lookName}.png`) });
      await page.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true`);
      await page.addScriptTag({ path: axe });
      const { passes, violations } = await page.evaluate<{ passes: unknown[]; violations: Violation[] }>(
        `axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })`,
      );
      console.log(
        `${name}, ${lookName}: ${passes.length} rules of axe-core pass, ${violations.length} do not`,
      );
      expectThat(passes.length > 10, `${name}, ${lookName}: axe-core checked too little`);
      for (const { id, nodes } of violations) {
        faults.push(
          `${name}, ${lookName}: ${id} at ${nodes.length} places, first ${nodes[0]?.html.slice(0, 120)}`,
        );
      }
      const overflow = await page.evaluate<number>(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      expectThat(overflow <= 0, `${name}, ${lookName}: ${overflow} pixels wider than the window`);
      await context.close();
    }
  }
}

/** The story of a reader who finds walletRpc by keyboard and signs as Alice. */
async function story(browser: Browser, baseUrl: string): Promise<void> {
  const { context, page } = await openPage(browser, {});
  await page.goto(`${baseUrl}/docs`);
  expectThat(
    !(await page.evaluate<boolean>(`document.querySelector('#tag-events').open`)),
    'events are unfolded',
  );
  await page.keyboard.press('/');
  await page.keyboard.type('sign or send');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.operation h1');
  expectThat(
    (await page.evaluate<string>('location.hash')) === '#/wallets/walletRpc',
    'the link of walletRpc',
  );
  await page.click('.try button[type=submit]');
  await page.waitForSelector('.result .good');
  await page.fill('[name="parameter:wallet_id"]', 'ext_wal_alice');
  await page.click('.try button[type=submit]');
  await page.waitForSelector('.result .bad');
  await page.check('[name=signer][value=Alice]');
  await page.click('.try button[type=submit]');
  await page.waitForSelector('.result .good');
  expectThat(/^200 /.test((await page.textContent('.result .good')) ?? ''), 'a request that Alice signed');
  await page.screenshot({ path: join(screenshots, 'docs-signed.png') });
  await context.close();
}

const sandbox = await startSandbox({ port: 0, seed: 'docs', seedData: true, logLevel: 'silent' });
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--enable-precise-memory-info'],
});
try {
  await measure(browser, sandbox.baseUrl);
  await look(browser, sandbox.baseUrl);
  await story(browser, sandbox.baseUrl);
} finally {
  await browser.close();
  await sandbox.close();
}
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
