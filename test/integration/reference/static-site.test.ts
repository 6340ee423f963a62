import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { env, getuid } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeDocsSite } from '../../../codegen/pages/docs-site.ts';
import { guidePages } from '../../../src/generated/pages.ts';
import {
  accessibilityFaults,
  browserPath,
  isTooWide,
  openWindow,
  startBrowser,
} from '../../support/inspector/browser.ts';
import { temporaryFolder } from '../../support/run-custos.ts';

let folder: string;
beforeAll(async () => {
  folder = temporaryFolder();
  await writeDocsSite(folder);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (path: string): string => readFileSync(join(folder, path), 'utf8');

test('every link of every page leads to a file of the folder, and to a section that it has', () => {
  const pages = globSync('**/*.html', { cwd: folder });
  expect(pages.length).toBe(guidePages.length + 2);
  const faults: string[] = [];
  for (const page of pages) {
    for (const [, target = ''] of read(page).matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = '', anchor = ''] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      const isFound = !path.startsWith('/') && existsSync(join(folder, file));
      const operation = /^\/\w+\/(\w+)$/.exec(anchor)?.[1];
      const hasSection =
        anchor === '' ||
        anchor.startsWith('/') ||
        (isFound && read(file).includes(` id="${decodeURIComponent(anchor)}"`));
      const hasOperation =
        operation === undefined || existsSync(join(folder, `operations/${operation}.json`));
      if (!isFound || !hasSection || !hasOperation) faults.push(`${page}: ${target}`);
    }
  }
  expect(faults).toEqual([]);
});

test('no page names the machine that wrote it, and none loads from another host', () => {
  // A sandbox without `--data` keeps its certificate authority in the folder of temporary files.
  const ofMachine = new RegExp(`${tmpdir()}/custos-(?:tests|${getuid?.()}/)|127\\.0\\.0\\.1:\\d{5}`);
  for (const path of globSync('**/*.{html,json}', { cwd: folder })) {
    const text = read(path);
    expect([path, ofMachine.exec(text)?.[0]]).toEqual([path, undefined]);
    expect([path, /<(?:script|link|img)[^>]*(?:src|href)="https?:/.exec(text)?.[0]]).toEqual([
      path,
      undefined,
    ]);
  }
});

test('the landing page says what, why and how, with a picture and the proof', () => {
  const html = read('index.html');
  expect(html).toMatch(/<h1>[^<]{20,}<\/h1>/);
  expect(html).toMatch(/<img src="\.\/[\w-]+\.png" alt="[^"]{10,}"/);
  for (const title of ['Start', 'Why trust it', 'What people use today'])
    expect(html).toContain(`>${title}</h2>`);
  expect(html).toContain('power cuts');
});

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** A host of files, below a path as code hosts have one for each project. */
async function serveFolder() {
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?');
    const file = join(folder, path.replace(/^\/project\/?/, '') || 'index.html');
    if (!path.startsWith('/project') || !existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
    response.end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/project`, [Symbol.dispose]: () => void server.close() };
}

test.skipIf(browserPath === undefined || env.TEST_LONG !== '1')(
  'in a browser, the search leads to an operation whose code follows the form, and which cannot be sent',
  { timeout: 120_000 },
  async () => {
    using host = await serveFolder();
    const browser = await startBrowser();
    try {
      for (const look of [
        { width: 1280, scheme: 'light' },
        { width: 390, scheme: 'dark' },
      ] as const) {
        await using window = await openWindow(browser, look);
        const { page, errors } = window;
        await page.goto(`${host.url}/`);
        await page.waitForSelector('.has-script');
        expect([await accessibilityFaults(page), await isTooWide(page)]).toEqual([[], false]);
        await page.getByRole('link', { name: 'Sign your first request' }).click();
        await page.getByText('Guide 1 of').waitFor();
        await page.keyboard.press('/');
        await page.getByRole('combobox').waitFor();
        await page.keyboard.type('create a wallet');
        await page.getByRole('option').first().waitFor();
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Create a wallet', exact: true }).waitFor();
        await page.getByLabel('Body').fill('{"chain_type":"solana"}');
        const code = page.getByRole('tabpanel', { name: 'Code' });
        expect(await code.textContent()).toContain('"chain_type":"solana"');
        expect(await code.textContent()).toContain('https://127.0.0.1:4010/v1/wallets');
        expect(await page.getByRole('button', { name: 'Send', exact: true }).isDisabled()).toBe(true);
        await page.getByText('These pages have no server').waitFor();
        expect([await accessibilityFaults(page), await isTooWide(page), errors]).toEqual([[], false, []]);
      }
    } finally {
      await browser.close();
    }
  },
);
