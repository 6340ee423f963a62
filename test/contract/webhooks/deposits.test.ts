import { bech32m } from '@scure/base';
import { encodeFunctionData, erc20Abi, type Hex, hexToBytes } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sparkAddress } from '../../../src/engine/signing/spark.ts';
import type { Wallet, WalletRpcRequest } from '../../../src/generated/schemas.ts';
import { call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const base = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const stranger = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const nativeToken = { type: 'native-token', address: null };
const faucet = '0x00000000000000000000000000000000000fa0ce';

let sandbox: TestSandbox;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(() => sandbox.reset());

async function control<Body>(method: 'GET' | 'POST', path: string, body?: object): Promise<Body> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox/${path}`,
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(text);
  return JSON.parse(text);
}

interface RecordedDeposit {
  readonly app_id: string;
  readonly payload: Record<string, unknown>;
}

/** The recorded deposits so far, oldest first. */
async function deposits(): Promise<Record<string, unknown>[]> {
  const { data } = await control<{ data: RecordedDeposit[] }>('GET', 'events?type=wallet.funds_deposited');
  return data.map(({ payload }) => payload);
}

interface Funded {
  readonly transaction_hash: string;
  readonly block_number: number;
}

const give = (deposit: object) => control<Funded>('POST', 'faucet', deposit);

async function walletOn(chainType: string): Promise<Wallet> {
  const body = { chain_type: chainType as 'ethereum' };
  return (await call(sandbox, 'createWallet', { body })).body;
}

async function send(wallet: Wallet, transaction: object): Promise<{ hash: string }> {
  const body = { method: 'eth_sendTransaction', caip2: base, params: { transaction } } as WalletRpcRequest;
  const answer = await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  return answer.body.data as { hash: string };
}

const tokenTransfer = (to: string, amount: bigint) => ({
  to: usdc,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, amount] }),
});

/** Signed by an external key and sent to the chain directly. */
async function sendFrom(account: ReturnType<typeof privateKeyToAccount>, transaction: object) {
  const signed = await account.signTransaction({
    ...{ chainId: 8453, type: 'eip1559', maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 6n },
    ...{ gas: 100_000n, ...transaction },
  });
  const outcome = await sandbox.chains.find(base)!.broadcast(hexToBytes(signed));
  if (!outcome.isAccepted) throw new Error(outcome.message);
  return outcome.hash;
}

describe('a deposit from the faucet', () => {
  test('a deposit from the faucet is recorded immediately, in the smallest unit, with the transaction and the block', async () => {
    const wallet = await walletOn('ethereum');
    const { transaction_hash, block_number } = await give({
      ...{ chain: 'base', address: wallet.address.toLowerCase(), amount: '2.5' },
    });
    expect(await deposits()).toEqual([
      {
        type: 'wallet.funds_deposited',
        wallet_id: wallet.id,
        idempotency_key: expect.stringMatching(/./),
        caip2: base,
        asset: { type: 'native-token', address: null },
        amount: '2500000000000000000',
        transaction_hash,
        sender: expect.stringMatching(new RegExp(faucet, 'i')),
        recipient: wallet.address,
        block: { number: block_number, timestamp: Math.floor(sandbox.clock.now() / 1000) },
      },
    ]);
  });

  const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
  const btkn = bech32m.encode('btkn', bech32m.toWords(new Uint8Array(32).fill(7)), false);
  const trc20 = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  test.each([
    ['ethereum', { chain: 'base', token_address: usdc }, { type: 'erc20', address: usdc }],
    ['solana', { chain: 'solana' }, nativeToken],
    ['solana', { chain: 'solana', token_address: mint }, { type: 'spl', mint }],
    ['tron', { chain: 'tron' }, nativeToken],
    ['tron', { chain: 'tron', token_address: trc20 }, { type: 'trc20', address: trc20 }],
    ['spark', { chain: 'spark:mainnet' }, nativeToken],
    ['spark', { chain: 'spark:mainnet', token_address: btkn }, { type: 'btkn', identifier: btkn }],
    ['bitcoin-taproot', { chain: 'bip122:000000000019d6689c085ae165831e93' }, nativeToken],
  ])('a deposit from the faucet on %s names the asset of %j', async (chainType, deposit, asset) => {
    const wallet = await walletOn(chainType);
    const { transaction_hash } = await give({ ...deposit, address: wallet.address, raw_amount: '7' });
    expect(await deposits()).toMatchObject([
      { wallet_id: wallet.id, asset, amount: '7', transaction_hash, recipient: wallet.address },
    ]);
  });

  test('on the other Spark network is recorded for the wallet of the same key', async () => {
    const wallet = await walletOn('spark');
    const address = sparkAddress(wallet.public_key!, 'REGTEST');
    await give({ chain: 'spark:regtest', address, raw_amount: '7' });
    expect(await deposits()).toMatchObject([
      { wallet_id: wallet.id, caip2: 'spark:regtest', asset: nativeToken, amount: '7', recipient: address },
    ]);
  });

  test('that is repeated is a second deposit with a different key', async () => {
    const wallet = await walletOn('ethereum');
    const deposit = { chain: 'base', address: wallet.address, raw_amount: '1' };
    await give(deposit);
    await give(deposit);
    await sandbox.settle();
    const reported = await deposits();
    expect(reported).toHaveLength(2);
    expect(new Set(reported.map((event) => event.idempotency_key)).size).toBe(2);
    expect(new Set(reported.map((event) => event.transaction_hash)).size).toBe(2);
  });

  test('to an unknown address or an archived wallet is not recorded', async () => {
    const archived = await walletOn('ethereum');
    await call(sandbox, 'archiveWallet', { path: { wallet_id: archived.id } });
    await give({ chain: 'base', address: stranger, raw_amount: '1' });
    await give({ chain: 'base', address: archived.address, raw_amount: '1' });
    expect(await deposits()).toEqual([]);
  });

  test('a deposit from the faucet from before the wallet existed is not recorded', async () => {
    const { address } = await walletOn('ethereum');
    await sandbox.reset();
    await give({ chain: 'base', address, raw_amount: '1' });
    // The seed makes the same key again.
    expect((await walletOn('ethereum')).address).toBe(address);
    await give({ chain: 'base', address, raw_amount: '2' });
    expect(await deposits()).toMatchObject([{ amount: '2' }]);
  });

  test('a deposit from the faucet is recorded again after a reset', async () => {
    const deposit = async () => {
      const wallet = await walletOn('ethereum');
      await give({ chain: 'base', address: wallet.address, raw_amount: '1' });
      return { wallet: wallet.id, reported: await deposits() };
    };
    const first = await deposit();
    await sandbox.reset();
    expect(await deposits()).toEqual([]);
    expect(await deposit()).toEqual(first);
    expect(first.reported).toMatchObject([{ wallet_id: first.wallet }]);
  });
});

describe('a transfer from an external account', () => {
  test('a transfer from an external account is recorded with its sender once it is in a block, not earlier', async () => {
    const wallet = await walletOn('ethereum');
    const account = privateKeyToAccount(generatePrivateKey());
    await give({ chain: 'base', address: account.address, amount: '1' });
    await give({ chain: 'base', address: account.address, token_address: usdc, raw_amount: '100' });
    const native = await sendFrom(account, { nonce: 0, to: wallet.address, value: 5n });
    const token = await sendFrom(account, { nonce: 1, ...tokenTransfer(wallet.address, 9n) });
    await sendFrom(account, { nonce: 2, to: wallet.address, value: 0n });
    await sandbox.settle();
    expect(await deposits()).toEqual([]);
    await waitSeconds(sandbox, 4);
    const from = { wallet_id: wallet.id, sender: account.address, recipient: wallet.address };
    const reported = [
      { ...from, transaction_hash: native, amount: '5', asset: { type: 'native-token' } },
      { ...from, transaction_hash: token, amount: '9', asset: { type: 'erc20', address: usdc } },
    ];
    expect(await deposits()).toMatchObject(reported);
    await waitSeconds(sandbox, 400);
    expect(await deposits()).toMatchObject(reported);
  });
});

describe('a transfer between wallets of this server', () => {
  test('a transfer between wallets of this server is recorded once for the sender and once for the recipient', async () => {
    const [alice, bob] = [await walletOn('ethereum'), await walletOn('ethereum')];
    await give({ chain: 'base', address: alice.address, amount: '1' });
    await give({ chain: 'base', address: alice.address, token_address: usdc, raw_amount: '100' });
    const native = await send(alice, { to: bob.address, value: 5 });
    const token = await send(alice, tokenTransfer(bob.address, 9n));
    // Advances until the blocks are final.
    for (let step = 0; step < 5; step += 1) await waitSeconds(sandbox, 60);
    const reported = (await deposits()).filter((event) => event.wallet_id === bob.id);
    expect(reported).toMatchObject([
      { transaction_hash: native.hash, amount: '5', sender: alice.address },
      { transaction_hash: token.hash, amount: '9', sender: alice.address },
    ]);
    const { data } = await control<{ data: RecordedDeposit[] }>('GET', 'events?type=wallet.funds_withdrawn');
    // Transactions are followed concurrently.
    const sent = data.map(({ payload }) => [payload.wallet_id, payload.amount, payload.transaction_hash]);
    expect(sent.sort((left, right) => Number(left[1]) - Number(right[1]))).toEqual([
      [alice.id, '5', native.hash],
      [alice.id, '9', token.hash],
    ]);
  });

  test('a transfer between wallets of this server in a batch is recorded per transfer', async () => {
    const [alice, bob] = [await walletOn('ethereum'), await walletOn('ethereum')];
    await give({ chain: 'base', address: alice.address, amount: '1' });
    const calls = [5, 6].map((value) => ({ to: bob.address, value }));
    const body = { method: 'wallet_sendCalls', caip2: base, params: { calls } } as WalletRpcRequest;
    await call(sandbox, 'walletRpc', { path: { wallet_id: alice.id }, body });
    for (let step = 0; step < 3; step += 1) await waitSeconds(sandbox, 60);
    const reported = (await deposits()).filter((event) => event.wallet_id === bob.id);
    expect(reported.map(({ amount }) => amount)).toEqual(['5', '6']);
    expect(new Set(reported.map((event) => event.idempotency_key)).size).toBe(2);
    expect(new Set(reported.map((event) => event.transaction_hash)).size).toBe(1);
  });
});
