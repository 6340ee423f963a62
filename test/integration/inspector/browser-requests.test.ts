import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import {
  accessibilityFaults,
  browserPath,
  isTooWide,
  openWindow,
  startBrowser,
} from '../../support/inspector/browser.ts';
import { builtInspector } from '../../support/inspector/built-inspector.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const looks = [
  { width: 1280, scheme: 'light' },
  { width: 390, scheme: 'dark' },
] as const;

describe.skipIf(browserPath === undefined)('the page of requests in a browser', () => {
  let built: Awaited<ReturnType<typeof builtInspector>>;
  let sandbox: TestSandbox;
  let browser: Browser;
  beforeAll(async () => {
    built = await builtInspector();
    sandbox = await startSandbox({ inspectorFolder: built.folder });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await sandbox[Symbol.asyncDispose]();
    built[Symbol.dispose]();
  });

  const rows = (page: Page) => page.locator('.rows .row');

  test.each(looks)(
    'the page of requests in a browser shows requests as they come, and why one was refused, at $width px, $scheme',
    async (look) => {
      await using window = await openWindow(browser, look);
      const { page, errors } = window;
      await call(sandbox, 'listWallets', {});
      await page.goto(`${sandbox.baseUrl}/#/requests?text=walletRpc`);
      await page.waitForSelector('.count');
      const before = await rows(page).count();
      const path = { wallet_id: 'ext_wal_alice' };
      const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } };
      await refusal(sandbox, 'walletRpc', { path, body }, { signWith: [bobKey.privateKey] });
      await rows(page).nth(before).waitFor();
      expect(await rows(page).first().textContent()).toContain('walletRpc');
      expect([await accessibilityFaults(page), await isTooWide(page)]).toEqual([[], false]);

      await page.locator('.grid').focus();
      await page.keyboard.press('Home');
      await page.keyboard.press('Enter');
      await page.waitForSelector('.why');
      expect(page.url()).toMatch(/#\/requests\/[0-9a-f-]{36}\?text=walletRpc$/);
      expect([await accessibilityFaults(page), await isTooWide(page)]).toEqual([[], false]);
      await page.getByRole('tab', { name: 'Signature' }).click();
      expect(await page.locator('.quorum').textContent()).toContain('0 of 1, 1 missing');
      expect(await page.locator('[aria-label="Payload to be signed"]').textContent()).toContain(
        'personal_sign',
      );
      expect([await accessibilityFaults(page), await isTooWide(page)]).toEqual([[], false]);
      expect(await page.content()).not.toContain(sandbox.appSecret);
      expect(errors).toEqual([]);
    },
  );
});
