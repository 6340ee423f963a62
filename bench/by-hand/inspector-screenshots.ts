import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { call, refusal } from '../../test/support/call.ts';
import { openWindow, startBrowser } from '../../test/support/inspector/browser.ts';
import { builtInspector } from '../../test/support/inspector/built-inspector.ts';
import { startSandbox } from '../../test/support/sandbox.ts';

// Writes a picture of each page of the inspector to `docs/inspector/`, wide and light, and narrow and dark. It then
// measures how long the page of requests takes with 10,000 requests. Needs an installed browser:
// node bench/by-hand/inspector-screenshots.ts

const folder = join(import.meta.dirname, '..', '..', 'docs', 'inspector');
const MOST_REQUESTS = 10_000;
const hello = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const;

using built = await builtInspector();
await using sandbox = await startSandbox({ inspectorFolder: built.folder, hints: true });
const browser = await startBrowser();
mkdirSync(folder, { recursive: true });

const treasury = { wallet_id: 'ext_wal_treasury' };
await call(sandbox, 'walletRpc', { path: { wallet_id: 'ext_wal_acme-ethereum' }, body: hello });
await call(sandbox, 'createWalletRpcIntent', { path: treasury, body: hello });
await refusal(sandbox, 'createWallet', { body: { chain_tipe: 'ethereum' } });
const { body: wallets } = await call(sandbox, 'listWallets', { query: { external_id: 'alice' } });
const { status } = await refusal(sandbox, 'walletRpc', { path: { wallet_id: 'ext_wal_alice' }, body: hello });
if (status !== 401) throw new Error(`expected 401, got ${status}`);

const log = (await (
  await sandbox.dispatcher.request({ origin: sandbox.baseUrl, path: '/_sandbox/requests', method: 'GET' })
).body.json()) as { data: { id: string }[] };
const pages: Readonly<Record<string, string>> = {
  requests: 'requests',
  request: `requests/${log.data.at(-1)!.id}`,
  wallet: `wallets/${wallets.data[0]!.id}`,
  actions: 'actions',
  transactions: 'transactions',
  events: 'events',
  webhooks: 'webhooks',
  clock: 'clock',
  faults: 'faults',
  snapshots: 'snapshots',
  scenarios: 'scenarios',
  coverage: 'coverage',
  intents: 'intents',
  policies: 'policies',
  users: 'users',
  apps: 'apps/custossandboxapp000000000',
  api: 'api/walletRpc',
};
for (const look of [
  { width: 1280, scheme: 'light' },
  { width: 390, scheme: 'dark' },
] as const) {
  await using window = await openWindow(browser, look);
  for (const [name, path] of Object.entries(pages)) {
    await window.page.goto(`${sandbox.baseUrl}/#/${path}`);
    await window.page.waitForSelector('h1', { state: 'attached' });
    await window.page.waitForTimeout(1500);
    await window.page.screenshot({ path: join(folder, `${name}-${look.width}.png`) });
  }
}

for (let sent = 0; sent < MOST_REQUESTS; sent += 50) {
  await Promise.all(Array.from({ length: 50 }, () => call(sandbox, 'getWallet', { path: treasury })));
}
await using window = await openWindow(browser, { width: 1280, scheme: 'light' });
const beganMs = performance.now();
await window.page.goto(sandbox.baseUrl);
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
