import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { type Hex, toHex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectBridge } from '../../../src/adapters/bridge/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { systemClock } from '../../../src/adapters/runtime.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { reopenTestDatabase } from '../../support/databases.ts';
import { type BankWorld, openBankWorld } from '../../support/fiat/bank-world.ts';
import { testUsdc } from '../../support/fiat/bridge-handlers.ts';
import { type BridgeService, openBridgeService } from '../../support/fiat/bridge-service.ts';
import { verify } from '../../support/fiat/customers.ts';
import { type EarnContracts, earnContractsOn } from '../../support/nodes/earn-contracts.ts';
import { deployUniswap, ROUTER_ON_ANVIL, type Uniswap } from '../../support/nodes/uniswap.ts';
import { runCommand, startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';
import { newOwner, payloadOf, signPayload } from '../../support/signer/owner.ts';
import { type ServedWithSigner, serveWithSigner } from '../../support/signer/serve-with-signer.ts';

// Swaps, earn actions and payouts that a production server builds for owned wallets, with its signer in a process of
// its own, the published contracts of Uniswap and OpenZeppelin's vault on a node, and a fiat provider.

const { caip2, chain, tokenAddress } = testUsdc;
const usdc = tokenAddress as Hex;
const million = 1_000_000n;
const ether = 10n ** 18n;

const owner = newOwner();
const cleanup = new AsyncDisposableStack();
let anvil: Anvil;
let uniswap: Uniswap;
let contracts: EarnContracts;
let bank: BankWorld;
let bridge: BridgeService;
let server: ServedWithSigner;

beforeAll(async () => {
  anvil = cleanup.use(await startAnvil(Number(caip2.slice('eip155:'.length))));
  uniswap = await deployUniswap(anvil);
  await uniswap.installToken(usdc);
  await uniswap.makePool([usdc, million * million], ['native', 300n * ether]);
  contracts = earnContractsOn(anvil);
  bank = cleanup.use(openBankWorld());
  bank.pass(Date.now() - bank.clock.now());
  bridge = cleanup.use(await openBridgeService(bank.bank, bank.clock));
  const settings = {
    CUSTOS_RPC: `${caip2}=${anvil.url}`,
    CUSTOS_CONFIRMATIONS: `${caip2}=off`,
    CUSTOS_SWAP_ROUTERS: `${caip2}=${ROUTER_ON_ANVIL}`,
    CUSTOS_BRIDGE_SANDBOX_URL: bridge.baseUrl,
    CUSTOS_BRIDGE_SANDBOX_KEY: bridge.apiKey,
  };
  server = await serveWithSigner({ settings });
  cleanup.defer(() => server.end());
});
afterAll(() => cleanup.disposeAsync());

/** A wallet with 10 ETH and 1000 USDC that only the owner can use. */
async function makeWallet(more: object = {}): Promise<Wallet> {
  const body = { chain_type: 'ethereum', owner: { public_key: owner.publicKey }, ...more };
  const { body: wallet } = await server.call('/v1/wallets', body);
  const { address } = wallet as Wallet;
  await anvil.ask('anvil_setBalance', address, toHex(10n * ether));
  await uniswap.giveToken(usdc, address, 1000n * million);
  return wallet;
}

type Asking = Pick<ServedWithSigner, 'call' | 'app'>;

/** Sends a request that the owner has signed. */
function asks({ call, app }: Asking, path: string, body: object) {
  const expiryMs = Date.now() + 60_000;
  const payload = payloadOf({ path, body, appId: app.id, expiryMs });
  return call(path, body, {
    'service-request-expiry': String(expiryMs),
    'service-authorization-signature': signPayload(owner, payload),
  });
}

/** Begins an action, which the server refuses without the signature of the owner. */
async function acts({ id }: Wallet, operation: string, body: object): Promise<Record<string, unknown>> {
  const path = `/v1/wallets/${id}/${operation}`;
  const expiry = { 'service-request-expiry': String(Date.now() + 60_000) };
  const unsigned = await server.call(path, body, expiry);
  expect(unsigned).toMatchObject({ status: 401, body: { error: expect.stringContaining('signature') } });
  const begun = await asks(server, path, body);
  expect(begun).toMatchObject({ status: 200, body: { status: 'pending' } });
  return begun.body;
}

/** Mines, and has the server look, until the action has ended. */
async function outcomeOf(wallet: Wallet, { id }: Record<string, unknown>): Promise<Record<string, unknown>> {
  const database = new Client({ connectionString: server.databaseUrl });
  await database.connect();
  try {
    for (;;) {
      await anvil.ask('evm_mine');
      bank.pass(60_000);
      for (const table of ['transactions', 'wallet_action_steps']) {
        await database
          .query(`update ${table} set next_check_at_ms = 0 where next_check_at_ms is not null`)
          // A job of the server may hold some of the rows; the next turn tries again.
          .catch((error: { code?: string }) => expect(error.code).toBe('40P01'));
      }
      const { body } = await server.call(`/v1/wallets/${wallet.id}/actions/${id}`);
      if ((body as { status: string }).status !== 'pending') return body;
      await pause(100);
    }
  } finally {
    await database.end();
  }
}

const held = ({ address }: Pick<Wallet, 'address'>) => contracts.read(usdc, 'Token', 'balanceOf', address);

const swap = {
  source: { asset_address: usdc, caip2 },
  ...{ destination: { asset_address: 'native' }, base_amount: String(300n * million), slippage_bps: 300 },
};

/** To whom the last tokens of a wallet went. */
async function payeeOf({ address }: Wallet): Promise<string> {
  const payer = toHex(BigInt(address), { size: 32 });
  const filter = { address: usdc, fromBlock: 'earliest', topics: [null, payer] };
  const logs = (await anvil.ask('eth_getLogs', filter)) as { topics: readonly string[] }[];
  return `0x${logs.at(-1)!.topics[2]!.slice(-40)}`;
}

// They wait for the jobs of the server beside each other, each with a wallet of its own.
describe.concurrent('what a server builds for an owned wallet', () => {
  test('a swap of an owned wallet passes the signer and is executed, once its owner has signed it', async () => {
    const wallet = await makeWallet();
    const ended = await outcomeOf(wallet, await acts(wallet, 'swap', swap));
    expect(ended).toMatchObject({ type: 'swap', status: 'succeeded', input_amount: String(300n * million) });
    expect(await held(wallet)).toBe(700n * million);
  });

  test('deposits in a vault and withdrawals pass the signer, once their owner has signed them', async () => {
    const wallet = await makeWallet();
    const vault = await contracts.deploy('Vault', usdc, 12);
    const added = await runCommand(
      [
        ...['apps', 'vaults', 'add', server.app.id, '--chain', chain, '--provider', 'morpho'],
        ...['--address', vault, '--admin-wallet', wallet.id, '--json'],
      ],
      { env: server.env },
    );
    const { id: vault_id } = JSON.parse(added.stdout) as { id: string };
    const deposit = await acts(wallet, 'earn/ethereum/deposit', { vault_id, amount: '7.5' });
    expect(await outcomeOf(wallet, deposit)).toMatchObject({ type: 'earn_deposit', status: 'succeeded' });
    expect(await held({ address: vault })).toBe(7_500_000n);
    const withdrawal = await acts(wallet, 'earn/ethereum/withdraw', { vault_id, amount: '2.5' });
    expect(await outcomeOf(wallet, withdrawal)).toMatchObject({ type: 'earn_withdraw', status: 'succeeded' });
    expect(await held(wallet)).toBe(995n * million);
  });

  test('a payout of an owned wallet passes the signer and pays the provider, once its owner has signed it', async () => {
    const { body: user } = await server.call('/v1/users', {
      linked_accounts: [{ type: 'email', address: `alice-${randomUUID()}@example.com` }],
    });
    const { id: userId } = user as { id: string };
    await using database = await reopenTestDatabase({
      kind: 'postgres',
      url: server.databaseUrl,
      poolSize: 1,
    });
    const { baseUrl, apiKey } = bridge;
    const account = { environment: 'sandbox', baseUrl, apiKey, webhookKey: undefined } as const;
    const fiatProviders = connectBridge([account], { clock: systemClock, log: silentLog });
    const services = { clock: systemClock, fiatProviders };
    const entity = { type: 'user', id: userId } as const;
    await verify({ services, database, fiat: bank.controls, appId: server.app.id }, entity);
    const answer = await server.call(`/v1/users/${userId}/external_fiat_accounts`, {
      ...{ provider: 'bridge', environment: 'sandbox', account_owner_name: 'Alice Example', currency: 'eur' },
      account: { type: 'iban', account_number: 'DE89370400440532013000', bic: 'COBADEFFXXX', country: 'DEU' },
    });
    const { external_fiat_account: registered } = answer.body as { external_fiat_account: { id: string } };
    const wallet = await makeWallet({ entity });
    const payout = await acts(wallet, 'payout/fiat', {
      source: { asset: 'usdc', chain, amount: '25' },
      destination: { fiat_account_id: registered.id },
    });
    await anvil.ask('evm_mine');
    expect(await held(wallet)).toBe(975n * million);
    // The bank has chains of its own, on which it receives what it was paid on the node.
    await bank.pay(wallet.address.toLowerCase(), await payeeOf(wallet), 25n * million);
    expect(await outcomeOf(wallet, payout)).toMatchObject({ type: 'payout', status: 'succeeded' });
  });
});

test('a server with another router than its signer gets no swap signed, and says so at its start', async () => {
  const folder = join(temporaryFolder(), 'signer');
  mkdirSync(folder, { mode: 0o700 });
  const socket = join(folder, 'socket');
  const { CUSTOS_MASTER_KEY_FILE, ...others } = server.env;
  const signer = await startCustos(['signer', '--socket', socket], {
    env: { CUSTOS_MASTER_KEY_FILE: CUSTOS_MASTER_KEY_FILE!, CUSTOS_SWAP_ROUTERS: `${caip2}=${usdc}` },
  });
  cleanup.defer(async () => void (await signer.stop()));
  await waitFor(() => signer.output().stdout.includes('"ready"') || signer.process.exitCode !== null);
  const beside = await server.startBeside({
    CUSTOS_MASTER_KEY_FILE: undefined,
    CUSTOS_SIGNER_SOCKET: socket,
  });
  cleanup.defer(() => beside.end());
  const router = `router ${caip2}=${ROUTER_ON_ANVIL.toLowerCase()}`;
  await waitFor(() => beside.output().stdout.includes(`"missing":["${router}"]`));
  const doctor = await runCommand(['doctor', '--serve', '--json'], {
    env: { ...others, CUSTOS_SIGNER_SOCKET: socket },
  });
  const findings = doctor.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(findings).toContainEqual(
    expect.objectContaining({ state: 'warning', text: expect.stringContaining(router) }),
  );
  const wallet = await makeWallet();
  const answer = await asks(beside, `/v1/wallets/${wallet.id}/swap`, swap);
  expect(answer.status).toBe(500);
  await waitFor(() => beside.output().stdout.includes('the signed request asks for something else'));
  await anvil.ask('evm_mine');
  expect(await held(wallet)).toBe(1000n * million);
});
