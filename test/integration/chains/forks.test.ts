import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  http,
  parseEther,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';

// A simulated chain that continues another one, which anvil runs here.

const CHAIN_ID = 8453;
const CAIP2 = `eip155:${CHAIN_ID}`;
const { Token } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as Record<'Token', { abi: Abi; bytecode: Hex }>;
const owner = privateKeyToAccount(`0x${'5e'.repeat(32)}`);
const token = getContractAddress({ from: owner.address, nonce: 0n });
const chainAt = (url: string) =>
  defineChain({
    ...{ id: CHAIN_ID, name: 'Base', nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 } },
    rpcUrls: { default: { http: [url] } },
  });

let anvil: Anvil;
let block: number;
let sandbox: TestSandbox;
const cache = mkdtempSync(join(tmpdir(), 'custos-forks-'));
const cacheBefore = process.env.XDG_CACHE_HOME;

beforeAll(async () => {
  process.env.XDG_CACHE_HOME = cache;
  anvil = await startAnvil(CHAIN_ID, 'osaka');
  await anvil.ask('anvil_setBalance', owner.address, `0x${parseEther('5').toString(16)}`);
  const there = createWalletClient({ account: owner, chain: chainAt(anvil.url), transport: http() });
  await there.sendTransaction({ data: encodeDeployData({ ...Token, args: [6] }) });
  await anvil.ask('evm_mine');
  block = Number(await anvil.ask('eth_blockNumber'));
  sandbox = await start();
});
afterAll(async () => {
  await sandbox?.close();
  await anvil?.[Symbol.asyncDispose]();
  if (cacheBefore === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = cacheBefore;
  rmSync(cache, { recursive: true, force: true });
});

function start(url = anvil.url): Promise<TestSandbox> {
  const forks = [{ caip2: CAIP2, url, block }];
  return startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0, seedData: false, forks });
}

const here = (of = sandbox) =>
  createPublicClient({ chain: chainAt(`${of.rpcUrl}/${CHAIN_ID}`), transport: http() });
const read = (functionName: string, args: unknown[] = [], of = sandbox) =>
  here(of).readContract({ address: token, abi: Token.abi, functionName, args });

test('code, storage, balances and nonces are those of the other chain', async () => {
  expect(await here().getBalance({ address: owner.address })).toBe(
    BigInt((await anvil.ask('eth_getBalance', owner.address, 'latest')) as string),
  );
  expect(await here().getTransactionCount({ address: owner.address })).toBe(1);
  expect(await here().getCode({ address: token })).toBe(await anvil.ask('eth_getCode', token, 'latest'));
  expect(await read('symbol')).toBe(
    await createPublicClient({ chain: chainAt(anvil.url), transport: http() }).readContract({
      ...{ address: token, abi: Token.abi, functionName: 'symbol' },
    }),
  );
});

test('transactions go on from there, and the other chain does not change', async () => {
  const before = await anvil.ask('eth_blockNumber');
  const wallet = createWalletClient({ account: owner, chain: here().chain, transport: http() });
  const hash = await wallet.sendTransaction({ to: `0x${'77'.repeat(20)}`, value: parseEther('1') });
  const receipt = await here().getTransactionReceipt({ hash });
  expect(receipt.status).toBe('success');
  expect(Number(receipt.blockNumber)).toBeGreaterThan(block);
  expect(await here().getBalance({ address: `0x${'77'.repeat(20)}` })).toBe(parseEther('1'));
  expect(await anvil.ask('eth_blockNumber')).toBe(before);
  expect(await anvil.ask('eth_getBalance', `0x${'77'.repeat(20)}`, 'latest')).toBe('0x0');
});

test('the faucet gives tokens of the other chain, which a wallet then sends', async () => {
  const created = (await sandbox.call('createWallet', { body: { chain_type: 'ethereum' } })) as {
    id: string;
    address: Hex;
  };
  await sandbox.faucet(created.address, { chain: CAIP2, amount: '1' });
  await sandbox.faucet(created.address, { chain: CAIP2, token_address: token, raw_amount: '900' });
  expect(await read('balanceOf', [created.address])).toBe(900n);
  await sandbox.faucet(created.address, { chain: CAIP2, token_address: token, raw_amount: '100' });
  expect(await read('balanceOf', [created.address])).toBe(1_000n);
  const data = encodeFunctionData({ abi: Token.abi, functionName: 'transfer', args: [owner.address, 400n] });
  const sent = (await sandbox.call('walletRpc', {
    path: { wallet_id: created.id },
    body: { method: 'eth_sendTransaction', caip2: CAIP2, params: { transaction: { to: token, data } } },
  })) as { data: { hash: Hex } };
  const receipt = await here().getTransactionReceipt({ hash: sent.data.hash });
  expect(receipt.status).toBe('success');
  expect(await read('balanceOf', [created.address])).toBe(600n);
});

test('an impersonated account of the other chain sends once', async () => {
  const from = '0x00000000000000000000000000000000000beef1';
  await anvil.ask('anvil_setBalance', from, '0x1');
  const client = here();
  await client.request({ method: 'anvil_impersonateAccount', params: [from] } as never);
  await client.request({ method: 'anvil_setBalance', params: [from, '0xde0b6b3a7640000'] } as never);
  const transaction = { from, to: `0x${'66'.repeat(20)}`, value: '0x5' };
  await client.request({ method: 'eth_sendTransaction', params: [transaction] } as never);
  expect(await client.getBalance({ address: `0x${'66'.repeat(20)}` })).toBe(5n);
  expect(await client.getTransactionCount({ address: from })).toBe(1);
});

test('blocks, transactions, logs and state before the fork are those of the other chain', async () => {
  const there = createPublicClient({ chain: chainAt(anvil.url), transport: http() });
  const [theirs, ours] = await Promise.all(
    [there, here()].map((client) =>
      client.getBlock({ blockNumber: BigInt(block), includeTransactions: true }),
    ),
  );
  expect(ours).toEqual(theirs);
  const [deployment] = theirs!.transactions;
  const hash = deployment!.hash;
  expect(await here().getTransactionReceipt({ hash })).toEqual(await there.getTransactionReceipt({ hash }));
  expect(await here().getTransaction({ hash })).toEqual(await there.getTransaction({ hash }));
  const first = await here().getBlock({ blockNumber: BigInt(block) + 1n });
  expect(first.parentHash).toBe(theirs!.hash);
  const logs = await here().getLogs({ fromBlock: 0n, toBlock: 'latest', address: token });
  const earlier = await there.getLogs({ fromBlock: 0n, toBlock: BigInt(block), address: token });
  expect(logs.slice(0, earlier.length)).toEqual(earlier);
  expect(await here().getBalance({ address: owner.address, blockNumber: 0n })).toBe(
    await there.getBalance({ address: owner.address, blockNumber: 0n }),
  );
});

test('once read, the state is there without the node', async () => {
  const other = await startAnvil(CHAIN_ID, 'osaka');
  const gone = other.url;
  await other[Symbol.asyncDispose]();
  await using offline = await start(gone);
  expect(await read('symbol', [], offline)).toBe(await read('symbol'));
  expect(await here(offline).getTransactionCount({ address: owner.address })).toBe(1);
  await expect(here(offline).getBalance({ address: `0x${'99'.repeat(20)}` })).rejects.toThrow(
    'no connection',
  );
  // The first wallet has the address of the one above, which is known by now.
  await offline.call('createWallet', { body: { chain_type: 'ethereum' } });
  const wallet = (await offline.call('createWallet', { body: { chain_type: 'ethereum' } })) as { id: string };
  await expect(
    offline.call('getWalletBalance', {
      path: { wallet_id: wallet.id },
      query: { asset: 'eth', chain: 'base' },
    }),
  ).rejects.toMatchObject({ status: 503 });
});

test('a node of another chain is refused', async () => {
  const forks = [{ caip2: 'eip155:10', url: anvil.url, block }];
  await using wrong = await startSandbox({ clock: 'frozen', rpcPort: 0, seedData: false, forks });
  const client = createPublicClient({ transport: http(`${wrong.rpcUrl}/10`) });
  await expect(client.getBlockNumber()).rejects.toThrow(
    'expected a node of eip155:10, got one of eip155:8453',
  );
});

test('snapshots and resets keep what the chain continues', async () => {
  await sandbox.snapshot('forked');
  expect(await read('symbol')).toBeDefined();
  await sandbox.load('forked');
  expect(Number(await here().getBlockNumber())).toBeGreaterThan(block);
  await sandbox.reset();
  expect(Number(await here().getBlockNumber())).toBe(block + 1);
  expect(await read('totalSupply')).toBe(0n);
});
