import * as Hex from 'ox/Hex';
import * as Secp256k1 from 'ox/Secp256k1';
import * as Tempo from 'ox/tempo/TxEnvelopeTempo';
import { encodeFunctionData, erc20Abi, type Hex as HexText } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Wallet, WalletRpcRequest } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// Tempo has no native asset: gas is paid in stablecoins, by the sender or by the account that signs as the fee payer.

const caip2 = 'eip155:42431';
const pathUsd = '0x20C0000000000000000000000000000000000000';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const payerKey = `0x${'17'.repeat(32)}` as const;
const payer = privateKeyToAddress(payerKey);

let sandbox: TestSandbox;
let wallet: Wallet;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
});

const fund = (address: string, rawAmount: bigint) =>
  sandbox.chains.fund(caip2, { address, tokenAddress: pathUsd, rawAmount, decimals: 6, symbol: 'PathUSD' });
const holds = async (address: string) => (await sandbox.chains.find(caip2)!.balances(address, [pathUsd]))[0]!;
const transfer = (amount: bigint) => ({
  to: pathUsd,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [receiver, amount] }),
});

async function send(transaction: object) {
  const body = { method: 'eth_sendTransaction', caip2, params: { transaction } } as WalletRpcRequest;
  const answer = await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  return answer.body.data as unknown as { transaction_id: string; transaction_request: { nonce: number } };
}

async function statusOf(id: string): Promise<string> {
  return (await call(sandbox, 'getTransaction', { path: { transaction_id: id } })).body.status;
}

test.each([
  ['a batch of type 118', { type: 118, calls: [transfer(1_000_000n), transfer(500_000n)] }],
  ['an ordinary transaction', transfer(1_500_000n)],
])('%s is paid in the stablecoin that it moves', async (_name, transaction) => {
  await fund(wallet.address, 5_000_000n);
  const { transaction_id: id } = await send(transaction);
  await waitSeconds(sandbox, 5);
  expect(await statusOf(id)).toBe('finalized');
  expect(await holds(receiver)).toBe(1_500_000n);
  const fee = 3_500_000n - (await holds(wallet.address));
  expect(fee).toBeGreaterThan(0n);
  // Below a cent.
  expect(fee).toBeLessThan(10_000n);
  const [usd] = (await sandbox.chains.books()).filter(
    ({ tokenAddress }) => tokenAddress?.toLowerCase() === pathUsd.toLowerCase(),
  );
  expect(Object.values(usd!.held).reduce((sum, amount) => sum + amount, 0n)).toBe(usd!.given);
});

const approval = (amount: bigint) => ({
  to: pathUsd,
  data: encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [wallet.address as HexText, amount],
  }),
});
const transferFromSelf = (amount: bigint) => ({
  to: pathUsd,
  data: encodeFunctionData({
    abi: erc20Abi,
    functionName: 'transferFrom',
    args: [wallet.address as HexText, receiver, amount],
  }),
});

test('a call of a batch may need what the calls before it do', async () => {
  await fund(wallet.address, 5_000_000n);
  const { transaction_id: id } = await send({
    type: 118,
    calls: [approval(700_000n), transferFromSelf(700_000n)],
  });
  await waitSeconds(sandbox, 5);
  expect(await statusOf(id)).toBe('finalized');
  expect(await holds(receiver)).toBe(700_000n);
});

test.each([
  ['without a gas limit', {}],
  ['with a gas limit', { gas_limit: 500_000 }],
])('a batch %s is refused if a call fails after the calls before it', async (_name, gas) => {
  await fund(wallet.address, 5_000_000n);
  const transaction = { type: 118, calls: [transfer(3_000_000n), transfer(3_000_000n)], ...gas };
  const body = { method: 'eth_sendTransaction', caip2, params: { transaction } } as WalletRpcRequest;
  const { body: answer } = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  expect(answer.code).toBe('transaction_execution_failure');
});

test('without a stablecoin every transaction is refused', async () => {
  const body = {
    method: 'eth_sendTransaction',
    caip2,
    params: { transaction: { to: receiver, data: '0x01' } },
  };
  const { body: answer } = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  expect(answer.code).toBe('insufficient_funds');
});

test('a fee payer who has signed pays in the chosen token', async () => {
  await fund(wallet.address, 1_000n);
  await fund(payer, 1_000_000n);
  const fields = {
    type: 118,
    calls: [transfer(1_000n)],
    nonce: 0,
    gas_limit: 200_000,
    max_fee_per_gas: 40_000_000_000,
    max_priority_fee_per_gas: 0,
    fee_token: pathUsd,
  };
  const envelope = Tempo.from({
    chainId: 42431,
    calls: [{ to: pathUsd.toLowerCase() as HexText, value: 0n, data: transfer(1_000n).data }],
    nonce: 0n,
    gas: 200_000n,
    maxFeePerGas: 40_000_000_000n,
    maxPriorityFeePerGas: 0n,
    feeToken: pathUsd.toLowerCase() as HexText,
  });
  const payload = Tempo.getFeePayerSignPayload(envelope, { sender: wallet.address as HexText });
  const { r, s, yParity } = Secp256k1.sign({ payload, privateKey: payerKey });
  const word = (value: bigint | HexText) =>
    typeof value === 'bigint' ? Hex.fromNumber(value, { size: 32 }) : value;
  const signature = { r: word(r), s: word(s), y_parity: yParity };
  const { transaction_id: id } = await send({ ...fields, fee_payer_signature: signature });
  await waitSeconds(sandbox, 5);
  expect(await statusOf(id)).toBe('finalized');
  expect(await holds(receiver)).toBe(1_000n);
  expect(await holds(wallet.address)).toBe(0n);
  expect(await holds(payer)).toBeLessThan(1_000_000n);
});

test('a transaction that was not included in its validity window has failed, and its nonce is free', async () => {
  await fund(wallet.address, 5_000_000n);
  const seconds = Math.floor(sandbox.clock.now() / 1000);
  const stuck = `0x${'ab'.repeat(16)}dead0001`;
  const { transaction_id: id } = await send({
    type: 118,
    calls: [{ to: stuck }],
    valid_before: seconds + 51,
  });
  await waitSeconds(sandbox, 30);
  expect(await statusOf(id)).toBe('broadcasted');
  await waitSeconds(sandbox, 60);
  await waitSeconds(sandbox, 60);
  expect(await statusOf(id)).toBe('failed');
  expect((await send(transfer(1n))).transaction_request.nonce).toBe(0);
});

test('a transaction with a start time waits for it', async () => {
  await fund(wallet.address, 5_000_000n);
  const seconds = Math.floor(sandbox.clock.now() / 1000);
  const { transaction_id: id } = await send({ type: 118, calls: [transfer(9n)], valid_after: seconds + 50 });
  await waitSeconds(sandbox, 30);
  expect(await statusOf(id)).toBe('broadcasted');
  await waitSeconds(sandbox, 30);
  await waitSeconds(sandbox, 30);
  expect(await statusOf(id)).toBe('finalized');
  expect(await holds(receiver)).toBe(9n);
});

test('sponsorship is refused: a paymaster does not accept stablecoins', async () => {
  const body = { method: 'eth_sendTransaction', caip2, sponsor: true, params: { transaction: transfer(1n) } };
  const { body: answer } = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  expect(answer).toEqual({
    error: '/sponsor: no paymaster is available on `eip155:42431`',
    code: 'not_supported',
  });
});
