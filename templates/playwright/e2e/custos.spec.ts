import { test as base, expect as baseExpect } from '@playwright/test';
import { type SandboxContext, sandboxFixtures } from 'custos/testing/fixtures';
import { sandboxMatchers } from 'custos/testing/matchers';

const expect = baseExpect.extend(sandboxMatchers);

const { startedSandbox, sandbox } = sandboxFixtures({ seed: 'e2e' });

/** One sandbox for each worker, and each test gets it as it started. */
const test = base.extend<Pick<SandboxContext, 'sandbox'>, Pick<SandboxContext, 'startedSandbox'>>({
  startedSandbox,
  sandbox,
});

// In your tests, start the app with `sandbox.baseUrl`, `sandbox.appId` and `sandbox.appSecret`, and open its pages.
test('the inspector of the sandbox shows the requests of a test', async ({ sandbox, page }) => {
  const wallet = await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
  await sandbox.call('archiveWallet', { path: { wallet_id: wallet.id } });
  await expect(sandbox).toHaveEvent('wallet.archived', { wallet_id: wallet.id });
  await page.goto(`${sandbox.baseUrl}/#/requests`);
  await expect(page.getByText('archiveWallet').first()).toBeVisible();
});

test('it does not keep what an earlier test did', async ({ sandbox, page }) => {
  await expect(sandbox).not.toHaveEvent('wallet.archived');
  await page.goto(`${sandbox.baseUrl}/docs`);
  await expect(page).toHaveTitle(/Custos/);
});
