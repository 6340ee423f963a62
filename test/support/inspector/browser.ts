import { existsSync } from 'node:fs';
import { env } from 'node:process';
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const places = [
  env.CHROMIUM ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** The path of the installed browser. Undefined if there is none. `CHROMIUM` selects another one. */
export const browserPath = places.find((path) => path !== '' && existsSync(path));

/** Starts the installed browser. */
export function startBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error('no browser is installed');
  return chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
}

/** A window, and the errors that its pages have reported. */
export interface Window extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly errors: readonly string[];
}

/** Opens a window. The browser does not know the certificate authority. */
export async function openWindow(
  browser: Browser,
  look: { readonly width: number; readonly scheme: 'light' | 'dark' },
): Promise<Window> {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    colorScheme: look.scheme,
    viewport: { width: look.width, height: 800 },
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return { context, page, errors, [Symbol.asyncDispose]: () => context.close() };
}

/** Returns the violations of WCAG 2.2 A or AA on the current page. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // The script is evaluated directly, because the content security policy of the page allows no other script.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
    }),
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** Whether the document is higher than the window. In the inspector, only areas of a page scroll. */
export function isTooHigh(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollHeight > document.documentElement.clientHeight');
}

/** Whether a part of the page is wider than the window, or than its container, which would then scroll. */
export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(
    `[document.documentElement, ...document.querySelectorAll('main, .detail, .card')].some(
      ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)`,
  );
}
