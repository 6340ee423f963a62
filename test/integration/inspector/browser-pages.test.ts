import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, control, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import {
  accessibilityFaults,
  browserPath,
  isTooHigh,
  isTooWide,
  openWindow,
  startBrowser,
} from '../../support/inspector/browser.ts';
import { builtInspector } from '../../support/inspector/built-inspector.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const looks = [
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
] as const;

// Only in the long form: browsers take half a minute for these stories.
const isSkipped = browserPath === undefined || env.TEST_LONG !== '1';

describe.skipIf(isSkipped)('pages of the inspector in a browser', () => {
  let built: Awaited<ReturnType<typeof builtInspector>>;
  let sandbox: TestSandbox;
  let browser: Browser;
  beforeAll(async () => {
    built = await builtInspector();
    sandbox = await startSandbox({ inspectorFolder: built.folder, hints: true });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await sandbox[Symbol.asyncDispose]();
    built[Symbol.dispose]();
  });

  /** Follows a story in a wide and in a narrow window, and judges what it ends with. */
  async function story(
    path: string,
    follow: (page: Page) => Promise<void>,
    expectedErrors: RegExp = /^$/,
  ): Promise<void> {
    for (const look of looks) {
      await using window = await openWindow(browser, look);
      const { page, errors } = window;
      await page.goto(`${sandbox.baseUrl}/#/${path}`);
      await page.waitForSelector('h1', { state: 'attached' });
      await follow(page);
      const others = errors.filter((each) => !expectedErrors.test(each));
      const isLarge = (await isTooWide(page)) || (await isTooHigh(page));
      expect([await accessibilityFaults(page), isLarge, others]).toEqual([[], false, []]);
      expect(await page.content()).not.toContain(sandbox.appSecret);
    }
  }

  const bodyText = (page: Page) => page.getByLabel('Body of the response as a tree').textContent();
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  test('no page is larger than the window, with and without an open row', () =>
    story('home', async (page) => {
      const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await refusal(sandbox, 'transferFromWallet', {
        path: { wallet_id: wallet.id },
        body: {
          source: { asset: 'usdc', chain: 'base', amount: '3' },
          destination: { address: `0x${'5a'.repeat(20)}` },
        },
      });
      const links = await page
        .locator('#pages a')
        .evaluateAll((all) => all.map((link) => link.getAttribute('href')!));
      expect(links.length).toBeGreaterThan(20);
      for (const link of links) {
        await page.goto(`${sandbox.baseUrl}/${link}`);
        await page.locator(`#pages [aria-current][href="${link}"]`).waitFor({ state: 'attached' });
        await page.locator('main h1').waitFor({ state: 'attached' });
        await expect.poll(() => page.locator('.skeleton').count(), { timeout: 30_000 }).toBe(0);
        expect([link, await isTooWide(page), await isTooHigh(page)]).toEqual([link, false, false]);
        const row = page.locator('.rows .row .lead').first();
        if ((await row.count()) === 0) continue;
        await row.click({ position: { x: 2, y: 2 } });
        await page.locator('.detail h2').waitFor();
        await expect.poll(() => page.locator('.detail .skeleton').count(), { timeout: 30_000 }).toBe(0);
        expect([link, await isTooWide(page), await isTooHigh(page)]).toEqual([link, false, false]);
        for (const tab of await page.locator('.detail').getByRole('tab').all()) {
          await tab.click();
          expect([link, await isTooWide(page), await isTooHigh(page)]).toEqual([link, false, false]);
        }
      }
    }));

  test('what is typed at once after the first opening of the palette is found', () =>
    story('home', async (page) => {
      await page.keyboard.press('Control+k');
      await page.keyboard.type('Key quorums', { delay: 1 });
      await page.getByRole('option', { name: 'Key quorums page' }).waitFor();
      const field = page.getByRole('combobox', { name: 'Find pages' });
      expect(await field.inputValue()).toBe('Key quorums');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Key quorums' }).waitFor();
    }));

  test('a wallet gets money from the faucet and signs as Alice', () =>
    story('wallets?text=alice', async (page) => {
      await page.locator('.rows .row').first().click();
      await page.getByLabel('Balances').getByText('base').first().waitFor();
      const row = page.getByRole('row', { name: /Ethereum ETH/ });
      const before = await row.textContent();
      await button(page, 'Credit').click();
      await page.getByText('1 eth credited on ethereum').waitFor();
      await expect.poll(() => row.textContent()).not.toBe(before);
      await page.getByRole('tab', { name: 'Sign', exact: true }).click();
      await button(page, 'Send').click();
      await page.getByText('Show the request').waitFor();
      expect(await bodyText(page)).toContain('signature: "0x');
    }));

  test('a refused request is signed again as Alice', () =>
    story('requests', async (page) => {
      await call(sandbox, 'listWallets', {});
      const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } };
      await page.evaluate(
        (sent) =>
          fetch('/_sandbox/requests', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(sent),
          }),
        { operation: 'walletRpc', path: { wallet_id: 'ext_wal_alice' }, body },
      );
      await page.locator('.rows .refused').first().click();
      await expect.poll(() => page.getByRole('checkbox', { name: 'alice' }).isChecked()).toBe(true);
      await button(page, 'Signed again').click();
      await page.getByText('Show the request').waitFor();
      expect(await page.getByLabel('Send again').textContent()).toContain('200');
    }));

  test('a request of a wallet without an owner is sent again without a signature', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const body = { method: 'personal_sign', params: { message: 'y', encoding: 'utf-8' } } as const;
    await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
    await story(`requests?text=walletRpc&wallet=${wallet.id}`, async (page) => {
      await page.locator('.rows .row').first().click();
      const again = page.getByLabel('Send again');
      expect(await button(page, 'Signed again').isDisabled()).toBe(true);
      await button(page, 'As it was').click();
      await again.getByText('Show the request').waitFor();
      expect(await again.getByRole('checkbox', { checked: true }).count()).toBe(0);
    });
  });

  test('an archived wallet is opened and restored', () =>
    story('wallets', async (page) => {
      const body = { chain_type: 'ethereum', display_name: 'Old' } as const;
      const { body: wallet } = await call(sandbox, 'createWallet', { body });
      await call(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
      await page.goto(`${sandbox.baseUrl}/#/wallets/${wallet.id}`);
      await page.reload();
      const panel = page.getByRole('region', { name: 'Wallet', exact: true });
      await panel.getByText('An archived wallet cannot be used').waitFor();
      await button(page, 'Restore').click();
      await panel.getByLabel('Balances').getByText('base').first().waitFor();
    }));

  test('a swap leads to its action, which shows what was received, and a refusal shows its hint', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await story(`wallets/${wallet.id}?tab=Send`, async (page) => {
      await page.getByRole('tab', { name: 'Send', exact: true }).click();
      const form = page.getByRole('region', { name: 'Swap', exact: true });
      await form.getByLabel('Amount').fill('9');
      await form.getByRole('button', { name: 'Swap', exact: true }).click();
      await form.locator('p.note').waitFor();
      await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
      await form.getByLabel('Amount').fill('0.5');
      await form.getByRole('button', { name: 'Swap', exact: true }).click();
      await form.getByText('Open this action').click();
      const panel = page.getByRole('region', { name: 'Action', exact: true });
      await panel.waitFor();
      sandbox.clock.advance(60_000);
      await sandbox.settle();
      await panel.getByRole('heading', { name: /Swap 0\.5 ETH → [\d,]+\.\d+ USDC/ }).waitFor();
      await panel.getByRole('img', { name: 'Pool of WETH and USDC: its curve' }).waitFor();
      const pool = panel.getByRole('table', { name: 'Pool of WETH and USDC' });
      await pool.getByRole('row', { name: /^The swap \+0\.5 −1,4\d\d\.\d+ 2,9\d\d\.\d+$/ }).waitFor();
      await panel.getByText(/0\.3 % is the fee, which stays in the pool/).waitFor();
      await panel.getByRole('list', { name: 'Steps' }).getByRole('link').first().click();
      const transaction = page.getByRole('region', { name: 'Transaction', exact: true });
      await transaction.getByText(/^Once its block is final: \d+ more blocks, \d+ s by/).waitFor();
    });
  });

  test('the open wallet shows the actions that begin elsewhere', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    let count = 0;
    await story(`wallets/${wallet.id}?tab=actions`, async (page) => {
      await page.getByRole('tab', { name: 'Actions', exact: true }).click();
      const actions = page.getByRole('region', { name: 'Actions', exact: true });
      await (count === 0
        ? actions.getByText('No transfers')
        : actions.getByText('Transfer').first()
      ).waitFor();
      await call(sandbox, 'transferFromWallet', {
        path: { wallet_id: wallet.id },
        body: {
          source: { asset: 'eth', amount: '0.1', chain: 'base' },
          destination: { address: `0x${'42'.repeat(20)}` },
        },
      });
      count += 1;
      await expect.poll(() => actions.getByRole('link').count(), { timeout: 30_000 }).toBe(count);
    });
  });

  test('a transfer on a chain is shown in the words of an interface that was uploaded', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    for (const asset of ['eth', 'usdc']) {
      await fund(sandbox, wallet.address, { chain: 'base', asset, rawAmount: 10n ** 18n });
    }
    await call(sandbox, 'transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: '3' },
        destination: { address: `0x${'5a'.repeat(20)}` },
      },
    });
    sandbox.clock.advance(60_000);
    await sandbox.settle();
    const inputs = ['payee', 'units'].map((name, index) => ({ name, type: ['address', 'uint256'][index] }));
    const artifact = { contractName: 'Dollar', abi: [{ type: 'function', name: 'transfer', inputs }] };
    await story('chains/eip155:8453', async (page) => {
      await page.getByLabel('Upload files').setInputFiles({
        ...{ name: 'Dollar.json', mimeType: 'application/json' },
        buffer: Buffer.from(JSON.stringify(artifact)),
      });
      await page.getByText('1 interface uploaded').waitFor();
      await page.getByRole('img', { name: 'Pool of WETH and USDC: its curve' }).waitFor();
      await page.locator('.rows .row .lead', { hasText: 'transfer' }).first().click();
      await page.getByText('payee', { exact: true }).waitFor();
      await page.getByText('3000000', { exact: true }).first().waitFor();
    });
  });

  test('a transaction is shown from its broadcast to its confirmation', () =>
    story('transactions', async (page) => {
      const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
      const { body: sent } = await call(sandbox, 'walletRpc', {
        path: { wallet_id: wallet.id },
        body: {
          method: 'eth_sendTransaction',
          caip2: 'eip155:8453',
          params: { transaction: { to: wallet.address, value: '0x1' } },
        },
      });
      const { transaction_id: id } = (sent as { data: { transaction_id: string } }).data;
      await page.locator(`[id="row-${id}"] .age`).click();
      const progress = page.getByRole('list', { name: 'Progress' });
      await progress.getByText('Broadcast').waitFor();
      await button(page, 'Drop').click();
      await page.getByText('the pool has lost it').waitFor();
      const pass = async (ms: number) => {
        sandbox.clock.advance(ms);
        await sandbox.settle();
      };
      // It is broadcast again at the first, and included by the second.
      await pass(60_000);
      await pass(60_000);
      await progress.getByText('Confirmed').waitFor();
      await progress.getByText('Once its block is final').waitFor();
      await pass(86_400_000);
      await progress.getByText('No reorganization can remove its block').waitFor();
    }));

  test('a policy is made in the form and in its JSON, linted, tested, replayed and deleted', () =>
    story(
      'policies',
      async (page) => {
        await page.getByRole('link', { name: 'New policy' }).click();
        const rule = page.getByRole('group', { name: 'Rule 1' });
        await rule.getByLabel('Operator').selectOption('contains');
        const json = page.getByLabel('JSON');
        expect(await json.inputValue()).toContain('"operator": "contains"');
        await json.fill('{');
        await page.getByText('the policy is not JSON').waitFor();
        expect(await rule.getByLabel('Operator').inputValue()).toBe('contains');
        const draft = {
          ...{ name: 'Polite', chain_type: 'ethereum' },
          rules: [
            {
              ...{ name: 'Please', method: 'personal_sign', action: 'ALLOW' },
              conditions: [{ field_source: 'message', field: 'content', operator: 'gt', value: 'x' }],
            },
          ],
        };
        await json.fill(JSON.stringify(draft));
        await rule.getByText('`gt` does not apply to the field').waitFor();
        await rule.getByLabel('Operator').selectOption('starts_with');
        await page.getByLabel('Lint').waitFor();
        await button(page, 'Create the policy').click();
        await page.getByRole('heading', { name: 'Polite' }).waitFor();
        await page.getByText('content starts with "x"').waitFor();
        await page.getByRole('tab', { name: 'Test' }).click();
        await button(page, 'Add a case').click();
        await button(page, 'Run').click();
        await page.getByText('1 of 1 as expected').waitFor();
        await page.getByLabel('Test bench').getByText('did not match').waitFor();
        await page.getByRole('tab', { name: 'Replay' }).click();
        await button(page, 'Replay').click();
        await page
          .getByLabel('Replay', { exact: true })
          .getByText(/\d+ of \d+ change/)
          .waitFor();
        await page.getByRole('tab', { name: 'Edit' }).click();
        await button(page, 'Delete').click();
        await button(page, 'Delete Polite?').click();
        await page.getByText('1 policy', { exact: true }).waitFor();
      },
      /status of 400/,
    ));

  test('an aggregation is made in the form, shows what was signed, and is deleted', () =>
    story('aggregations/new', async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('Spent');
      await page.getByLabel('Separate sums').selectOption('one for each receiver');
      expect(await page.getByLabel('JSON').inputValue()).toContain('"field": "to"');
      await button(page, 'Create the aggregation').click();
      await page.getByRole('heading', { name: 'Spent' }).waitFor();
      await page.getByText('Nothing that counts was signed').waitFor();
      const body = { chain_type: 'ethereum', display_name: 'Shop' } as const;
      const { body: wallet } = await call(sandbox, 'createWallet', { body });
      await call(sandbox, 'walletRpc', {
        path: { wallet_id: wallet.id },
        body: {
          method: 'eth_signTransaction',
          params: {
            transaction: {
              ...{
                to: wallet.address,
                value: `0x${(10n ** 17n).toString(16)}`,
                chain_id: 1,
                type: 2,
                nonce: 0,
              },
              ...{ gas_limit: 21_000, max_fee_per_gas: 1, max_priority_fee_per_gas: 1 },
            },
          },
        },
      });
      await page.getByRole('row', { name: /Shop.*0\.1 ETH/ }).waitFor();
      await page.getByRole('tab', { name: 'Limits' }).click();
      await page.getByText('No policy compares the sums').waitFor();
      await page.getByRole('tab', { name: 'Definition' }).click();
      await button(page, 'Delete').click();
      await button(page, 'Delete Spent?').click();
      await page.getByText('No aggregations yet').waitFor();
    }));

  test('a key quorum is made of people by name, changed, deleted, and brought back', () =>
    story('quorums/new', async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('Ops');
      await page.getByLabel('alice', { exact: true }).check();
      await page.getByLabel('bob', { exact: true }).check();
      await page.getByLabel('Members who must sign').fill('2');
      await button(page, 'Create the key quorum').click();
      await page.getByRole('heading', { name: 'Ops 2 of 2' }).waitFor();
      await page.getByRole('tab', { name: 'Change', exact: true }).click();
      await page.getByLabel('Members who must sign').fill('1');
      const signers = page.getByRole('group', { name: 'Sign as' });
      for (const name of ['alice', 'bob'])
        expect(await signers.getByLabel(name, { exact: true }).isChecked()).toBe(true);
      await button(page, 'Save').click();
      await page.getByRole('heading', { name: 'Ops 1 of 2' }).waitFor();
      await button(page, 'Delete').click();
      await button(page, 'Delete Ops?').click();
      await page.getByText('Deleted Ops.').waitFor();
      await button(page, 'Undo').click();
      await page.getByText('Deleted Ops.').waitFor({ state: 'detached' });
      await page.getByText('Ops', { exact: true }).first().waitFor();
      expect(await page.locator('.rows .row').filter({ hasText: 'Ops' }).count()).toBeGreaterThan(0);
    }));

  test('a condition set is made with its values, changed and deleted', () =>
    story(
      'sets/new',
      async (page) => {
        await page.getByLabel('Name', { exact: true }).fill('Receivers');
        const values = page.getByLabel('Values, one a line');
        await values.fill('0xAa\n0xBb\n');
        await button(page, 'Create the condition set').click();
        await page.getByRole('heading', { name: 'Receivers' }).waitFor();
        await expect.poll(() => values.inputValue()).toMatch(/0xBb/);
        await page.getByLabel('Name', { exact: true }).fill('Allowed receivers');
        await values.fill('0xCc');
        await button(page, 'Save').click();
        await page.getByRole('heading', { name: 'Allowed receivers' }).waitFor();
        const { body: sets } = await call(sandbox, 'listConditionSets', {});
        const { id } = sets.data.find(({ name }) => name === 'Allowed receivers')!;
        const { body: items } = await call(sandbox, 'listConditionSetItems', {
          path: { condition_set_id: id },
        });
        expect(items.items.map(({ value }) => value)).toEqual(['0xCc']);
        await button(page, 'Delete').click();
        await button(page, 'Delete Allowed receivers?').click();
        await page.getByText('No condition sets yet').waitFor();
      },
      /404/,
    ));

  test('settings of an app are changed as JSON, and a wrong one is refused in place', () =>
    story(
      'apps/custossandboxapp000000000?tab=change',
      async (page) => {
        const json = page.getByLabel('Settings as JSON');
        const settings = JSON.parse(await json.inputValue());
        await json.fill('[]');
        await button(page, 'Save').click();
        await page.getByText('Settings are a JSON object.').waitFor();
        await json.fill(JSON.stringify({ ...settings, allowed_origins: ['https://shop.example'] }));
        await button(page, 'Save').click();
        await page.getByText('Saved.').waitFor();
        const { body } = await control(sandbox, 'GET', '/_sandbox/apps');
        const [app] = (body as { data: { settings: { allowed_origins?: string[] } }[] }).data;
        expect(app!.settings.allowed_origins).toEqual(['https://shop.example']);
        const { allowed_origins: _, ...rest } = JSON.parse(await json.inputValue());
        await json.fill(JSON.stringify(rest));
        await button(page, 'Save').click();
        await expect
          .poll(async () => JSON.stringify((await control(sandbox, 'GET', '/_sandbox/apps')).body))
          .not.toContain('shop.example');
      },
      /400/,
    ));

  test('events appear as they are recorded, with their deliveries', () =>
    story('events?text=wallet.archived', async (page) => {
      await page.getByText('Trigger an event').click();
      await page.getByLabel('Event type').fill('wallet.archived');
      await button(page, 'Trigger').click();
      await page.locator('.rows .row').first().click();
      await page.getByText('No endpoint gets this event.').waitFor();
      await page.getByRole('tab', { name: 'Payload' }).click();
      expect(await page.getByLabel('Payload as a tree').textContent()).toContain('type: "wallet.archived"');
    }));

  test('the clock is advanced', () =>
    story('clock', async (page) => {
      const before = sandbox.clock.now();
      await page.getByText('frozen', { exact: true }).waitFor();
      await button(page, '1 hour').click();
      await expect.poll(() => sandbox.clock.now()).toBe(before + 3_600_000);
      const shown = new Date(before + 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
      await page.getByText(shown).waitFor();
    }));

  test('the clock goes to what happens next', () =>
    story('clock', async (page) => {
      const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } } as const;
      await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: 'ext_wal_treasury' }, body });
      const marks = page.getByLabel('What happens next');
      await button(page, 'Refresh').click();
      await marks.getByText('intent expires').last().waitFor();
      const next = await page.evaluate(async () => {
        const answer = await fetch('/_sandbox/clock/upcoming?limit=1');
        return ((await answer.json()) as { data: { at_ms: number }[] }).data[0]!.at_ms;
      });
      await button(page, 'Go to the next').click();
      await expect.poll(() => sandbox.clock.now()).toBe(next);
    }));

  test('the clock goes to a mark of the slider', () =>
    story('clock', async (page) => {
      const body = { method: 'personal_sign', params: { message: 'y', encoding: 'utf-8' } } as const;
      await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: 'ext_wal_treasury' }, body });
      await button(page, 'Refresh').click();
      const slider = page.getByRole('slider', { name: 'Go to' });
      await slider.press('End');
      await page.locator('output').getByText('intent expires in').waitFor();
      const before = sandbox.clock.now();
      await page.locator('.clock-line').getByRole('button', { name: 'Go there' }).click();
      await expect.poll(() => sandbox.clock.now()).toBeGreaterThan(before + 71 * 3_600_000);
    }));

  test('coverage shows what was called, and one operation with its gaps', () =>
    story('coverage', async (page) => {
      await call(sandbox, 'listWallets', {});
      await button(page, 'Refresh').click();
      await page.getByRole('link', { name: 'listWallets', exact: true }).click();
      await page.getByLabel('Used', { exact: true }).getByText('listWallets 200').waitFor();
      await page.getByLabel('Not used').getByText('listWallets 400 invalid_data').waitFor();
    }));

  test('an intent is signed by two members and executed', () =>
    story('intents', async (page) => {
      const body = { method: 'personal_sign', params: { message: 'x', encoding: 'utf-8' } } as const;
      await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: 'ext_wal_treasury' }, body });
      await button(page, 'Refresh').click();
      await button(page, 'Sign as alice').click();
      await page.getByText('signed at').waitFor();
      await button(page, 'Sign as bob').click();
      await page.getByText('Executed', { exact: true }).waitFor();
    }));

  test('an operation is sent with its example, signed as Alice', () =>
    story('api/walletRpc?text=walletRpc', async (page) => {
      const request = page.getByLabel('Request', { exact: true });
      await request.waitFor();
      const draft = JSON.parse(await request.inputValue());
      expect(draft.path).toHaveProperty('wallet_id');
      const body = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };
      await request.fill(JSON.stringify({ path: { wallet_id: 'ext_wal_alice' }, body }));
      await page.getByRole('checkbox', { name: 'alice' }).check();
      await button(page, 'Send').click();
      await page.getByText('Show the request').waitFor();
      expect(await bodyText(page)).toContain('signature: "0x');
    }));

  test('an operation shows what is simulated for it, and what replaces it', () =>
    story('api/createCustodialWallet?text=createCustodialWallet', async (page) => {
      await page.getByText('Where it differs: 1 simulated').click();
      await page.getByText('Simulated, custodians: the custodian is part of the sandbox').waitFor();
      await page.getByText('In custos serve: no custodian is connected').waitFor();
    }));

  test('an example of creating a user can be sent again and again', () =>
    story('api/createUser?text=createUser', async (page) => {
      await page.getByRole('checkbox', { name: 'alice' }).check();
      await button(page, 'Send').click();
      await page.getByText('Show the request').waitFor();
      expect(await bodyText(page)).toContain('"did:');
    }));

  test('a fault rule is added, meets a request, and is removed', () =>
    story('faults', async (page) => {
      await page.getByLabel('Effect').selectOption('error');
      await page.getByLabel('Operation').fill('createWallet');
      await page.getByLabel('At most').fill('1');
      await button(page, 'Add').click();
      const rules = page.getByRole('table', { name: 'Rules' });
      await rules.getByText('operation createWallet').waitFor();
      await refusal(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await rules.getByText('1 of 1').waitFor();
      await page.getByRole('button', { name: /^Remove fault_/ }).click();
      await page.getByText('No rules').waitFor();
      await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    }));

  test('a snapshot brings back what was deleted, once it is confirmed', () =>
    story('snapshots', async (page) => {
      const { body: kept } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await page.getByLabel('Name').fill('before');
      await button(page, 'Save').click();
      await page.getByText('before saved').waitFor();
      const { body: later } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await button(page, 'Load before').click();
      await page.keyboard.press('Escape');
      await button(page, 'Load before').click();
      await call(sandbox, 'getWallet', { path: { wallet_id: later.id } });
      await button(page, 'Replace everything by before?').click();
      await page.getByText('before loaded').waitFor();
      await refusal(sandbox, 'getWallet', { path: { wallet_id: later.id } });
      await call(sandbox, 'getWallet', { path: { wallet_id: kept.id } });
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        button(page, 'Download before').click(),
      ]);
      expect(download.suggestedFilename()).toBe('before.snapshot');
      const file = join(tmpdir(), `custos-${page.viewportSize()?.width}`, 'carried.snapshot');
      await download.saveAs(file);
      await page.getByLabel('Upload a file').setInputFiles(file);
      await page.getByText('carried uploaded').waitFor();
      await button(page, 'Load carried').click();
      await button(page, 'Replace everything by carried?').click();
      await page.getByText('carried loaded').waitFor();
      for (const name of ['before', 'carried']) {
        await button(page, `Delete ${name}`).click();
        await button(page, `Delete ${name}?`).click();
        await page.getByText(`${name} deleted`).waitFor();
      }
      await page.getByText('No snapshots yet').waitFor();
    }));

  test('a scenario is run, and its steps lead to their requests', () =>
    story('scenarios', async (page) => {
      await button(page, 'Run quorum-short').click();
      const scenario = page.getByLabel('Scenario quorum-short');
      await scenario.getByText('incorrect_quantity_of_authorization_signatures').waitFor();
      expect(await scenario.getByRole('link', { name: 'walletRpc' }).first().getAttribute('href')).toMatch(
        /^#\/requests\/[0-9a-f-]{36}$/,
      );
      const quorum = scenario.getByText('key quorum').getByRole('link').last();
      await quorum.click();
      await page.getByRole('region', { name: 'Key quorum' }).getByText('Alice').first().waitFor();
    }));

  test('a user is found by an account, with the wallets that it owns', () =>
    story('users', async (page) => {
      const address = 'dora@example.com';
      const { body: users } = await call(sandbox, 'listUsers', {});
      const known = users.data.find(({ linked_accounts: [account] }) => account?.type === 'email');
      const { id } =
        known ??
        (await call(sandbox, 'createUser', { body: { linked_accounts: [{ type: 'email', address }] } })).body;
      const body = { chain_type: 'ethereum', owner: { user_id: id } } as const;
      const { body: wallet } = await call(sandbox, 'createWallet', { body });
      await button(page, 'Refresh').click();
      await page.getByLabel('Id or account').fill('email');
      await page.locator(`[id="row-${id}"]`).click();
      await page.getByLabel('Wallets', { exact: true }).last().getByText(wallet.address).waitFor();
    }));

  test('an app is shown with its settings and with what clients see', () =>
    story('apps', async (page) => {
      await page.locator('.rows .row').first().click();
      await page.getByRole('tab', { name: 'What clients see' }).click();
      const seen = page.getByRole('region', { name: 'What clients see as a tree' });
      await seen.waitFor();
      expect(await seen.textContent()).toContain('allowed_domains');
    }));

  test('a webhook endpoint gets a test, is disabled, and is changed', () =>
    story('webhooks', async (page) => {
      const url = `https://127.0.0.1:9/${page.viewportSize()?.width}`;
      const { body: endpoint } = await call(sandbox, 'createWebhookEndpoint', {
        body: { url, event_types: ['wallet.archived'] },
      });
      await button(page, 'Refresh').click();
      await page.locator(`[id="row-${endpoint.id}"]`).click();
      await button(page, 'Send a test').click();
      await page.getByLabel('Deliveries').getByText('service.test').waitFor();
      await button(page, 'Disable').click();
      await page.getByText('requested').first().waitFor();
      await page.getByRole('tab', { name: 'Change' }).click();
      await page.getByRole('textbox', { name: 'Description' }).fill('Orders');
      await button(page, 'Save').click();
      await expect
        .poll(
          async () =>
            (await call(sandbox, 'getWebhookEndpoint', { path: { endpoint_id: endpoint.id } })).body,
        )
        .toMatchObject({ description: 'Orders', url, event_types: ['wallet.archived'] });
    }));

  test('an action of a wallet is shown with its steps', () =>
    story('actions', async (page) => {
      const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
      const { body: action } = await call(sandbox, 'transferFromWallet', {
        path: { wallet_id: wallet.id },
        body: {
          source: { asset: 'eth', chain: 'base', amount: '0.1' },
          destination: { address: wallet.address },
        },
      });
      await page.locator(`[id="row-${action.id}"] .lead`).click();
      await page.getByRole('list', { name: 'Steps' }).getByText('Evm transaction').waitFor();
    }));
});
