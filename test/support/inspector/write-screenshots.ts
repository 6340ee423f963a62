import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit } from 'node:process';
import type { Page } from 'playwright-core';
import { bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../call.ts';
import { fund } from '../fund.ts';
import { startSandbox } from '../sandbox.ts';
import { startWebhookReceiver } from '../webhook-receiver.ts';
import { openWindow, startBrowser } from './browser.ts';
import { builtInspector } from './built-inspector.ts';

// Takes screenshots of the pages of the inspector. It needs an installed browser.
//
//   node test/support/inspector/write-screenshots.ts
//     stores those that the documents show in `docs/inspector/`. It then measures how long the page of requests takes
//     with 10,000 requests.
//   node test/support/inspector/write-screenshots.ts <folder> [page...]
//     stores all pages, or the named ones, in both widths and both schemes.

const [chosenFolder, ...chosenPages] = argv.slice(2);
const folder = chosenFolder ?? join(import.meta.dirname, '..', '..', '..', 'docs', 'inspector');
const MAX_REQUESTS = 10_000;
const hello = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const;

using built = await builtInspector();
await using sandbox = await startSandbox({ inspectorFolder: built.folder, hints: true });
await using receiver = await startWebhookReceiver();
const browser = await startBrowser();
mkdirSync(folder, { recursive: true });

async function control(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
  const answer = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: `/_sandbox${path}`, method },
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${await answer.body.text()}`);
  return answer.body.json();
}

/** Creates content for each page. */
await call(sandbox, 'createWebhookEndpoint', {
  body: { url: receiver.url, event_types: ['*'] },
});
const { body: payer } = await call(sandbox, 'createWallet', {
  body: { chain_type: 'ethereum', display_name: 'Payouts' },
});
const { body: wallets } = await call(sandbox, 'listWallets', { query: { external_id: 'alice' } });
const alice = wallets.data[0]!;
for (const asset of [
  { asset: 'eth', rawAmount: 2n * 10n ** 18n },
  { asset: 'usdc', rawAmount: 250_000_000n },
]) {
  for (const { address } of [payer, alice]) await fund(sandbox, address, { chain: 'base', ...asset });
}
const { body: action } = await call(sandbox, 'transferFromWallet', {
  path: { wallet_id: payer.id },
  body: {
    source: { asset: 'usdc', chain: 'base', amount: '12.5' },
    destination: { address: alice.address },
  },
});
const { body: swap } = await call(sandbox, 'executeWalletSwap', {
  path: { wallet_id: payer.id },
  body: {
    source: { asset_address: 'native', caip2: 'eip155:8453' },
    destination: { asset_address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
    base_amount: String(15n * 10n ** 17n),
  },
});
sandbox.clock.advance(60_000);
await sandbox.settle();
await control('POST', '/faults', { effect: 'latency', operation: 'walletRpc', delay_ms: 200 });
await control('POST', '/faults', {
  ...{ effect: 'error', code: 'unavailable', operation: 'createWallet', probability: 0.25 },
});
await control('POST', '/snapshots', { name: 'paid-out' });
await call(sandbox, 'walletRpc', { path: { wallet_id: 'ext_wal_acme-ethereum' }, body: hello });
await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: 'ext_wal_treasury' }, body: hello });
await control('POST', '/scenarios/policy-denied');
await refusal(sandbox, 'createWallet', { body: { chain_tipe: 'ethereum' } });
await call(sandbox, 'listWallets', { query: { external_id: 'alice' } });
const { status } = await refusal(
  sandbox,
  'walletRpc',
  { path: { wallet_id: 'ext_wal_alice' }, body: hello },
  { signWith: [bobKey.privateKey] },
);
if (status !== 401) throw new Error(`expected 401, got ${status}`);
await sandbox.settle();

const latest = async (path: string): Promise<string> =>
  ((await control('GET', path)) as { data: { id: string }[] }).data.at(-1)!.id;

interface Shown {
  readonly path: string;
  /** Prepares the page for its screenshot. */
  readonly arrange?: (page: Page) => Promise<unknown>;
}

const press = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true }).click();
const openFirst = (page: Page) => page.locator('.rows .row').first().click();
const pages: Readonly<Record<string, Shown>> = {
  home: { path: 'home' },
  requests: { path: 'requests' },
  request: { path: `requests/${await latest('/requests')}` },
  wallet: { path: `wallets/${alice.id}` },
  wallets: { path: 'wallets' },
  money: { path: 'money' },
  actions: { path: `actions/${action.id}` },
  swap: { path: `actions/${swap.id}` },
  pools: { path: 'chains/eip155:8453' },
  transactions: { path: 'transactions', arrange: openFirst },
  chains: { path: 'chains/eip155:8453', arrange: (page) => page.getByText('transfer').first().click() },
  events: { path: 'events?text=wallet', arrange: openFirst },
  webhooks: { path: 'webhooks', arrange: openFirst },
  clock: { path: 'clock' },
  faults: { path: 'faults' },
  snapshots: { path: 'snapshots' },
  scenarios: { path: 'scenarios', arrange: press('Run quorum-short') },
  coverage: { path: 'coverage' },
  intents: { path: 'intents' },
  policies: { path: 'policies/new' },
  users: { path: 'users', arrange: openFirst },
  quorums: { path: 'quorums', arrange: openFirst },
  'quorum-form': { path: 'quorums/new' },
  components: { path: 'components' },
  apps: { path: 'apps/custossandboxapp000000000?tab=change' },
  sets: { path: 'sets/new' },
  'wallet-send': { path: `wallets/${alice.id}?tab=send` },
  'endpoint-form': {
    path: 'webhooks',
    arrange: async (page) => {
      await openFirst(page);
      await page.getByRole('tab', { name: 'Change' }).click();
    },
  },
  api: { path: 'api/walletRpc' },
};
const looks = [
  { width: 1280, scheme: 'light' },
  { width: 390, scheme: 'dark' },
  { width: 1280, scheme: 'dark' },
  { width: 390, scheme: 'light' },
] as const;
/** Without a folder, the pictures of the documents. */
const wanted = chosenFolder === undefined ? ['home', 'request'] : chosenPages;
for (const look of looks.slice(0, chosenFolder === undefined ? 1 : 4)) {
  await using window = await openWindow(browser, look);
  for (const [name, { path, arrange }] of Object.entries(pages)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    await window.page.goto(`${sandbox.baseUrl}/#/${path}`);
    await window.page.waitForSelector('h1', { state: 'attached' }).catch((error: Error) => {
      throw new Error(`${name}: ${window.errors.join('\n')}`, { cause: error });
    });
    await window.page.waitForTimeout(1000);
    await arrange?.(window.page);
    await window.page.waitForTimeout(500);
    await window.page.screenshot({
      path: join(folder, `${name}-${look.width}${chosenFolder === undefined ? '' : `-${look.scheme}`}.png`),
    });
  }
}

if (chosenFolder !== undefined) exit();

const treasury = { wallet_id: 'ext_wal_treasury' };
for (let sent = 0; sent < MAX_REQUESTS; sent += 50) {
  await Promise.all(Array.from({ length: 50 }, () => call(sandbox, 'getWallet', { path: treasury })));
}
await using window = await openWindow(browser, { width: 1280, scheme: 'light' });
const beganMs = performance.now();
await window.page.goto(`${sandbox.baseUrl}/#/requests`);
await window.page.locator('.rows .row').first().waitFor();
const drawnMs = performance.now() - beganMs;
await window.page.getByText('10000 requests').waitFor();
const allMs = performance.now() - beganMs;
const frames = await window.page.evaluate(`(async () => {
  const grid = document.querySelector('.grid');
  const times = [];
  let last = performance.now();
  for (let step = 0; step < 120; step += 1) {
    grid.scrollTop += 2500;
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  times.sort((a, b) => a - b);
  return { median: times[60], p95: times[114], drawn: document.querySelectorAll('.rows .row').length };
})()`);
console.log({ drawnMs: Math.round(drawnMs), allMs: Math.round(allMs), frames });
await browser.close();
