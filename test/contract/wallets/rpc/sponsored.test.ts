import {
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import { encodeFunctionData, erc20Abi, type Hex, recoverAddress } from 'viem';
import { getUserOperationHash } from 'viem/account-abstraction';
import { recoverAuthorizationAddress } from 'viem/utils';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Wallet, WalletRpcRequest } from '../../../../src/generated/schemas.ts';
import { call, refusal } from '../../../support/call.ts';
import { fund } from '../../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// `sponsor: true`: the gas is sponsored. viem and web3.js decode what was signed.

const caip2 = 'eip155:8453';
const solanaId = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const other = '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0';
const entryPoint = '0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108';
const account = '0xe6Cae83BdE06E4c305530e199D7217f42808555B';
const paymaster = '0x00000000000000000000000000000000000FA7E5';

let sandbox: TestSandbox;
let wallet: Wallet;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 2_000_000n });
});

interface Sent {
  readonly hash: string;
  readonly transaction_id: string;
  readonly user_operation_hash: Hex;
}

async function send(body: object, from = wallet): Promise<Sent> {
  const input = { path: { wallet_id: from.id }, body: body as WalletRpcRequest };
  return (await call(sandbox, 'walletRpc', input)).body.data as unknown as Sent;
}

async function refused(body: object, from = wallet): Promise<string> {
  const answer = await refusal(sandbox, 'walletRpc', { path: { wallet_id: from.id }, body });
  return `${answer.status} ${answer.body.code} ${answer.body.error}`;
}

const ethSend = (transaction: object, extra: object = {}) => ({
  method: 'eth_sendTransaction',
  caip2,
  sponsor: true,
  params: { transaction },
  ...extra,
});
const tokenTransfer = (amount: bigint, to: string = receiver) => ({
  to: usdc,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, amount] }),
});
const transactionOf = async (id: string) =>
  (await call(sandbox, 'getTransaction', { path: { transaction_id: id } })).body;
const holdings = (address: string) => sandbox.chains.find(caip2)!.balances(address, [null, usdc]);

async function events(): Promise<Record<string, unknown>[]> {
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>('select payload from outbox_events order by sequence');
  return rows.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
}

async function storedOperation(id: string) {
  const [row] = await sandbox.database.orm.em
    .fork()
    .execute<{ signed_bytes: Uint8Array }[]>('select signed_bytes from transactions where id = ?', [id]);
  return JSON.parse(Buffer.from(row!.signed_bytes).toString()) as {
    user_operation: Record<string, Hex>;
    authorization?: { contract: Hex; chain_id: number; nonce: number; r: Hex; s: Hex; y_parity: number };
  };
}

test('a wallet without gas sends a token; events report the cost to the app', async () => {
  const before = await sandbox.chains.total(caip2, null);
  const sent = await send(ethSend(tokenTransfer(1_500_000n), { reference_id: 'order-7' }));
  expect(sent).toEqual({
    hash: '',
    caip2,
    transaction_id: expect.any(String),
    user_operation_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    reference_id: 'order-7',
  });
  const row = { id: sent.transaction_id, wallet_id: wallet.id, caip2, reference_id: 'order-7' };
  expect(await transactionOf(sent.transaction_id)).toEqual({
    ...row,
    transaction_hash: null,
    user_operation_hash: sent.user_operation_hash,
    status: 'broadcasted',
    sponsored: true,
    created_at: sandbox.clock.now(),
  });
  await waitSeconds(sandbox, 10);
  const confirmed = await transactionOf(sent.transaction_id);
  expect(confirmed).toMatchObject({ status: 'confirmed', sponsored: true });
  const hash = confirmed.transaction_hash;
  expect(hash).toMatch(/^0x[0-9a-f]{64}$/);
  expect(hash).not.toBe(sent.user_operation_hash);
  expect(await holdings(wallet.address)).toEqual([0n, 500_000n]);
  expect(await holdings(receiver)).toEqual([0n, 1_500_000n]);

  const reported = await events();
  const completed = reported.find(({ type }) => type === 'user_operation.completed')!;
  expect(completed).toEqual({
    type: 'user_operation.completed',
    user_op_hash: sent.user_operation_hash,
    sender: wallet.address,
    paymaster,
    nonce: expect.stringMatching(/^\d+$/),
    success: true,
    actual_gas_cost: expect.stringMatching(/^\d+$/),
    actual_gas_used: expect.stringMatching(/^\d+$/),
    caip2,
    transaction_hash: hash,
    block_number: expect.any(Number),
    log_index: 0,
  });
  // 3000 dollars an ether.
  const cost = BigInt(completed.actual_gas_cost as string);
  expect(cost).toBeGreaterThan(0n);
  const usage = reported.find(({ type }) => type === 'usage.gas_sponsorship.recorded')!;
  expect(usage).toMatchObject({ source_type: 'rpc', source_id: sent.transaction_id });
  expect(Number(usage.amount_usd)).toBeCloseTo((Number(cost) * 3000) / 1e18, 12);
  expect(
    reported
      .filter(({ type }) => String(type).startsWith('transaction.'))
      .map((event) => event.transaction_hash),
  ).toEqual(['', hash]);
  // The paymaster paid from its deposit, and no other balance changed.
  const [left] = await holdings(paymaster);
  expect(await sandbox.chains.total(caip2, null)).toBe(before + left! + cost);

  await waitSeconds(sandbox, 600);
  expect(await transactionOf(sent.transaction_id)).toMatchObject({ status: 'finalized' });
  const again = (await events()).map(({ type }) => type);
  expect(again.filter((type) => type === 'usage.gas_sponsorship.recorded')).toHaveLength(1);
});

test('the signed operation is for entry point 0.8, and the first one delegates the account', async () => {
  const first = await send(ethSend(tokenTransfer(1n)));
  const { user_operation: operation, authorization } = await storedOperation(first.transaction_id);
  const hash = getUserOperationHash({
    chainId: 8453,
    entryPointAddress: entryPoint,
    entryPointVersion: '0.8',
    userOperation: {
      sender: operation.sender!,
      nonce: BigInt(operation.nonce!),
      callData: operation.call_data!,
      callGasLimit: BigInt(operation.call_gas_limit!),
      verificationGasLimit: BigInt(operation.verification_gas_limit!),
      preVerificationGas: BigInt(operation.pre_verification_gas!),
      maxFeePerGas: BigInt(operation.max_fee_per_gas!),
      maxPriorityFeePerGas: BigInt(operation.max_priority_fee_per_gas!),
      paymaster: operation.paymaster!,
      paymasterData: operation.paymaster_data!,
      paymasterVerificationGasLimit: BigInt(operation.paymaster_verification_gas_limit!),
      paymasterPostOpGasLimit: BigInt(operation.paymaster_post_op_gas_limit!),
      signature: operation.signature!,
    },
  });
  expect(hash).toBe(first.user_operation_hash);
  expect(await recoverAddress({ hash, signature: operation.signature! })).toBe(wallet.address);
  const { contract, chain_id: chainId, nonce, r, s, y_parity: yParity } = authorization!;
  expect(contract.toLowerCase()).toBe(account.toLowerCase());
  expect(
    await recoverAuthorizationAddress({
      authorization: { address: contract, chainId, nonce, r, s, yParity },
    }),
  ).toBe(wallet.address);
  await waitSeconds(sandbox, 10);
  const second = await send(ethSend(tokenTransfer(1n)));
  expect((await storedOperation(second.transaction_id)).authorization).toBeUndefined();
  await waitSeconds(sandbox, 10);
  expect(await holdings(receiver)).toEqual([0n, 2n]);
});

test('wallet_sendCalls: all calls in one operation; a batch of the wallet itself works before and after', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const calls = [
    { ...tokenTransfer(3n), value: 0 },
    { to: other, value: 7 },
  ];
  const body = { method: 'wallet_sendCalls', caip2, params: { calls } };
  for (const sponsor of [false, true, false, true]) {
    const { transaction_id: id } = await send({ ...body, sponsor });
    await waitSeconds(sandbox, 10);
    expect(await transactionOf(id)).toMatchObject({ status: 'confirmed', sponsored: sponsor });
  }
  expect(await holdings(receiver)).toEqual([0n, 12n]);
  expect(await holdings(other)).toEqual([28n, 0n]);
});

test('concurrent sponsored sends, and one after a pending transaction, all arrive', async () => {
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await send(ethSend({ to: other, value: 1 }, { sponsor: false }));
  const ids = await Promise.all([1n, 2n, 3n].map((amount) => send(ethSend(tokenTransfer(amount)))));
  await waitSeconds(sandbox, 10);
  await waitSeconds(sandbox, 10);
  for (const { transaction_id: id } of ids)
    expect(await transactionOf(id)).toMatchObject({ status: 'confirmed' });
  expect(await holdings(receiver)).toEqual([0n, 6n]);
});

test('an operation is evaluated and simulated first; the gas of a revert is paid as well', async () => {
  expect(await refused(ethSend(tokenTransfer(5_000_000n)))).toMatch(/^400 transaction_execution_failure/);
  expect(await refused(ethSend({ to: receiver, value: 1 }))).toMatch(/^400 insufficient_funds/);
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: {
      version: '1.0',
      name: 'Small',
      chain_type: 'ethereum',
      rules: [
        {
          name: 'Only USDC',
          method: 'eth_sendTransaction',
          action: 'ALLOW',
          conditions: [
            { field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: usdc },
            { field_source: 'ethereum_transaction', field: 'chain_id', operator: 'eq', value: '8453' },
          ],
        },
      ],
    },
  });
  const { body: policed } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.id] },
  });
  await fund(sandbox, policed.address, { chain: 'base', asset: 'usdc', rawAmount: 10n });
  expect(await refused(ethSend({ to: receiver, data: '0x01' }), policed)).toMatch(/^400 policy_violation/);
  await send(ethSend(tokenTransfer(1n)), policed);

  // A recipient that reverts only in a block.
  const reverting = `0x${'ab'.repeat(16)}dead0003`;
  const { transaction_id: id } = await send(ethSend(tokenTransfer(4n, reverting)));
  await waitSeconds(sandbox, 10);
  expect(await transactionOf(id)).toMatchObject({ status: 'execution_reverted' });
  const reported = await events();
  expect(reported.filter(({ type }) => type === 'user_operation.completed')).toContainEqual(
    expect.objectContaining({ success: false, sender: wallet.address }),
  );
  expect((await holdings(wallet.address))[1]).toBe(2_000_000n);
});

test('an operation that the bundler loses ends as `provider_error`', async () => {
  const lost = `0x${'ab'.repeat(16)}dead0004`;
  const { transaction_id: id } = await send(ethSend(tokenTransfer(4n, lost)));
  await waitSeconds(sandbox, 10);
  expect(await transactionOf(id)).toMatchObject({ status: 'provider_error', transaction_hash: null });
  expect((await events()).map(({ type }) => type)).toContain('transaction.provider_error');
});

test('fields that an operation cannot contain are refused by name', async () => {
  for (const [field, value] of [
    ['nonce', 3],
    ['gas_limit', 90_000],
    ['max_fee_per_gas', 7],
    ['authorization_list', []],
  ] as const) {
    expect(await refused(ethSend({ ...tokenTransfer(1n), [field]: value }))).toBe(
      `400 invalid_data /params/transaction/${field}: expected none with \`sponsor\``,
    );
  }
  expect(await refused(ethSend({ ...tokenTransfer(1n), chain_id: 1 }))).toMatch(
    /\/params\/transaction\/chain_id/,
  );
  expect(await refused(ethSend({ ...tokenTransfer(1n), from: other }))).toMatch(
    /\/params\/transaction\/from/,
  );
  expect(await refused(ethSend({ data: '0x00' }))).toMatch(/\/params\/transaction\/to/);
  const options = { sponsor: false, sponsor_options: { asset: 'usdc' } };
  expect(await refused(ethSend(tokenTransfer(1n), options))).toBe(
    '400 invalid_data /sponsor_options: expected only with `sponsor`',
  );
});

test('Solana: the fee payer is the first account and pays, the wallet pays nothing', async () => {
  const { body: payer } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
  await fund(sandbox, payer.address, { chain: 'solana', asset: 'sol', rawAmount: 50_000_000n });
  const from = new PublicKey(payer.address);
  const to = Keypair.fromSeed(new Uint8Array(32).fill(5)).publicKey;
  const instruction = SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports: 2_000_000 });
  const recentBlockhash = '11111111111111111111111111111111';
  const legacy = new Transaction({ feePayer: from, recentBlockhash }).add(instruction);
  const versioned = new VersionedTransaction(
    new TransactionMessage({
      payerKey: from,
      recentBlockhash,
      instructions: [SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports: 3_000_000 })],
    }).compileToV0Message(),
  );
  const wires = [legacy.serialize({ requireAllSignatures: false }), versioned.serialize()];
  for (const wire of wires) {
    const sent = (await send(
      {
        method: 'signAndSendTransaction',
        caip2: solanaId,
        sponsor: true,
        params: { transaction: Buffer.from(wire).toString('base64'), encoding: 'base64' },
      },
      payer,
    )) as unknown as { hash: string; signed_transaction: string; transaction_id: string };
    const signed = VersionedTransaction.deserialize(Buffer.from(sent.signed_transaction, 'base64'));
    const keys = signed.message.staticAccountKeys.map(String);
    expect(signed.message.header.numRequiredSignatures).toBe(2);
    expect(keys[1]).toBe(payer.address);
    expect(keys[0]).not.toBe(payer.address);
    await waitSeconds(sandbox, 5);
    expect(await transactionOf(sent.transaction_id)).toMatchObject({
      sponsored: true,
      transaction_hash: sent.hash,
      status: 'confirmed',
    });
  }
  const chain = sandbox.chains.find(solanaId)!;
  expect(await chain.balances(payer.address, [null])).toEqual([45_000_000n]);
  expect(await chain.balances(String(to), [null])).toEqual([5_000_000n]);
  const usage = (await events()).filter(({ type }) => type === 'usage.gas_sponsorship.recorded');
  expect(usage).toHaveLength(2);
  // Two signatures at 5000 lamports, 150 dollars a SOL.
  for (const { amount_usd: amount } of usage) expect(Number(amount)).toBeGreaterThan(0);
});
