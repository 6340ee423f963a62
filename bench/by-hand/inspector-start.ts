import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { call } from '../../test/support/call.ts';
import { openWindow, startBrowser } from '../../test/support/inspector/browser.ts';
import { builtInspector } from '../../test/support/inspector/built-inspector.ts';
import { startSandbox } from '../../test/support/sandbox.ts';

// Measures when the page of requests, with 100 of them, shows its rows and takes clicks, in a browser without cache and
// on a reload; and how long its main thread works until then. Needs an installed browser:
// node bench/by-hand/inspector-start.ts [rounds]

const rounds = Number(process.argv[2] ?? 15);

using built = await builtInspector();
await using sandbox = await startSandbox({ inspectorFolder: built.folder });
for (let sent = 0; sent < 100; sent += 1) await call(sandbox, 'listWallets', {});
const browser = await startBrowser();

interface Measured {
  /** Until the rows are there, since the navigation began. */
  readonly shownMs: number;
  readonly workMs: number;
}

/** The first row is there and reacts: its details open. */
async function measure(page: Page, go: () => Promise<unknown>): Promise<Measured> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  await go();
  // Evaluated, because the content security policy of the page admits no code from strings.
  let shownMs: number | undefined;
  while (shownMs === undefined) {
    shownMs = await page.evaluate(() => (globalThis as { shownMs?: number }).shownMs);
    if (shownMs === undefined) await setTimeout(10);
  }
  const { metrics } = await session.send('Performance.getMetrics');
  await session.detach();
  const work = metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  return { shownMs, workMs: work * 1000 };
}

const noteRows = `new MutationObserver((_, observer) => {
  if (!document.querySelector('.rows .row')) return;
  observer.disconnect();
  // After the frame that shows them: handlers are attached, and the main thread is free.
  requestAnimationFrame(() => setTimeout(() => { globalThis.shownMs = performance.now(); }));
}).observe(document, { subtree: true, childList: true });`;

const results: Record<'first visit' | 'reload', Measured[]> = { 'first visit': [], reload: [] };
for (let round = 0; round < rounds; round += 1) {
  await using window = await openWindow(browser, { width: 1280, scheme: 'light' });
  await window.page.addInitScript(noteRows);
  results['first visit'].push(await measure(window.page, () => window.page.goto(sandbox.baseUrl)));
  results.reload.push(await measure(window.page, () => window.page.reload()));
  const beganMs = performance.now();
  await window.page.locator('.rows .row').first().click();
  await window.page.getByText('Show the request').or(window.page.locator('h2')).first().waitFor();
  if (round === 0) console.log(`a click opens the details in ${Math.round(performance.now() - beganMs)} ms`);
}
for (const [name, list] of Object.entries(results)) {
  const spread = (values: number[]): string => {
    const sorted = values.sort((a, b) => a - b).map(Math.round);
    return `least ${sorted[0]}, median ${sorted[Math.floor(rounds / 2)]}, most ${sorted.at(-1)} ms`;
  };
  console.log(`${name}: interactive after ${spread(list.map(({ shownMs }) => shownMs))}`);
  console.log(`  work of the main thread: ${spread(list.map(({ workMs }) => workMs))}`);
}
await browser.close();
