import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startSandbox } from '../../../src/compose/sandbox.ts';
import { openWindow, startBrowser } from './browser.ts';

// Writes the picture of the reference that documents show into docs/screenshots/, and with a folder as an argument a
// picture of every kind of page, in both widths and themes, to be looked at:
//
// node test/support/inspector/write-docs-screenshots.ts [folder]

const root = join(import.meta.dirname, '..', '..', '..');
const [folder] = process.argv.slice(2);

const pages = {
  reference: '/docs',
  operation: '/docs#/wallets/createWallet',
  signed: '/docs#/wallets/walletRpc',
  event: '/docs#/webhooks/onIntentAuthorized',
  guide: '/docs/guides/policies',
  error: '/docs/errors/policy_violation',
  settings: '/docs/reference/settings',
} as const;

const sandbox = await startSandbox({ port: 0, seed: 'docs', seedData: true, logLevel: 'silent' });
const browser = await startBrowser();
const picture = async (name: keyof typeof pages, width: number, scheme: 'light' | 'dark', path: string) => {
  await using window = await openWindow(browser, { width, scheme });
  const { page } = window;
  await page.goto(sandbox.baseUrl + pages[name]);
  await page.locator('h1').first().waitFor();
  if (name === 'signed') {
    await page.getByLabel('wallet_id').fill('ext_wal_alice');
    await page.getByRole('checkbox', { name: 'Alice' }).check();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('200 OK').waitFor();
  }
  await page.screenshot({ path });
};
mkdirSync(join(root, 'docs', 'screenshots'), { recursive: true });
await picture('operation', 1280, 'light', join(root, 'docs', 'screenshots', 'reference.png'));
if (folder !== undefined) {
  for (const name of Object.keys(pages) as (keyof typeof pages)[]) {
    for (const width of [1280, 390]) {
      for (const scheme of ['light', 'dark'] as const) {
        await picture(name, width, scheme, join(folder, `${name}-${width}-${scheme}.png`));
      }
    }
  }
}
await browser.close();
await sandbox.close();
