import { createPublicKey, verify } from 'node:crypto';
import { bech32m } from '@scure/base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aliceKey } from '../../../../mocks/authorization-keys.ts';
import { bitcoinTaprootSigner } from '../../../../src/engine/signing/bitcoin.ts';
import { sparkDepositAddress, sparkSigner } from '../../../../src/engine/signing/spark.ts';
import type { SparkCoopExitFeeQuote, SparkTransfer, Wallet } from '../../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// Transfers on Spark with simulated operators, tested through the API.

const mainnet = 'spark:mainnet';
const token = bech32m.encode('btkn', bech32m.toWords(new Uint8Array(32).fill(7)), false);
const layer1 = 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu';

let sandbox: TestSandbox;
let wallet: Wallet;
let other: Wallet;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  const body = { chain_type: 'spark' } as const;
  wallet = (await call(sandbox, 'createWallet', { body })).body;
  other = (await call(sandbox, 'createWallet', { body })).body;
});

async function ask<Data>(
  method: string,
  params?: object,
  from = wallet,
  options?: CallOptions,
): Promise<Data> {
  const body = { method, ...(params === undefined ? {} : { params }) };
  const input = { path: { wallet_id: from.id }, body } as never;
  const answer = await call(sandbox, 'walletRpc', input, options);
  expect(answer.body.method).toBe(method);
  return answer.body.data as Data;
}

async function refused(method: string, params: object, extra: object = {}): Promise<string> {
  const body = { method, params, ...extra };
  const answer = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  return `${answer.status} ${answer.body.code} ${answer.body.error}`;
}

async function fund(address: string, rawAmount: bigint, tokenAddress: string | null = null): Promise<string> {
  const funded = await sandbox.chains.fund(mainnet, {
    address,
    tokenAddress,
    rawAmount,
    decimals: 2,
    symbol: 'BEAN',
  });
  if ('fault' in funded) throw new Error(funded.message);
  return funded.hash;
}

const satsOf = async (from: Wallet) =>
  (await ask<{ balance: string }>('getBalance', undefined, from)).balance;
const total = () => sandbox.chains.total(mainnet, null);

test('a new wallet is empty; deposits are shown with their token', async () => {
  expect(await ask('getBalance')).toEqual({ balance: '0', token_balances: {} });
  await fund(wallet.address, 1_500n);
  await fund(wallet.address, 2_500n, token);
  expect(await ask('getBalance')).toEqual({
    balance: '1500',
    token_balances: {
      [token]: {
        balance: '2500',
        token_metadata: {
          raw_token_identifier: '07'.repeat(32),
          token_public_key: expect.stringMatching(/^0[23][0-9a-f]{64}$/),
          token_name: 'BEAN',
          token_ticker: 'BEAN',
          decimals: 2,
          max_supply: '0',
        },
      },
    },
  });
});

test('transfer: sats move immediately, and once under an idempotency key', async () => {
  await fund(wallet.address, 1_500n);
  const params = { receiver_spark_address: other.address, amount_sats: 1_000 };
  const options = { idempotencyKey: 'pay-once' };
  const sent = await ask<SparkTransfer>('transfer', params, wallet, options);
  expect(sent).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    sender_identity_public_key: wallet.public_key,
    receiver_identity_public_key: other.public_key,
    status: 'TRANSFER_STATUS_SENDER_KEY_TWEAKED',
    total_value: 1_000,
    created_time: new Date(sandbox.clock.now()).toISOString(),
    updated_time: new Date(sandbox.clock.now()).toISOString(),
    leaves: [],
    type: 'TRANSFER',
    transfer_direction: 'OUTGOING',
  });
  expect(await ask('transfer', params, wallet, options)).toEqual(sent);
  expect([await satsOf(wallet), await satsOf(other)]).toEqual(['500', '1000']);
  expect(await refused('transfer', params)).toMatch(/^400 insufficient_funds/);
  expect(await refused('transfer', { ...params, receiver_spark_address: layer1 })).toMatch(
    /^400 invalid_data \/params\/receiver_spark_address: expected a Spark address of MAINNET/,
  );
  const elsewhere = { network: 'REGTEST' };
  expect(await refused('transfer', params, elsewhere)).toMatch(/expected a Spark address of REGTEST/);
  expect(await total()).toBe(1_500n);
});

test('operators go down between signing and sending: the same operation is sent later, once', async () => {
  await fund(wallet.address, 1_500n);
  const chain = sandbox.chains.find(mainnet)!;
  const broadcast = chain.broadcast.bind(chain);
  Object.assign(chain, {
    broadcast: () => {
      Object.assign(chain, { broadcast });
      return Promise.reject(new Error('connect ECONNREFUSED'));
    },
  });
  await ask('transfer', { receiver_spark_address: other.address, amount_sats: 400 });
  expect(await satsOf(other)).toBe('0');
  await waitSeconds(sandbox, 30);
  await waitSeconds(sandbox, 30);
  expect([await satsOf(wallet), await satsOf(other)]).toEqual(['1100', '400']);
});

test('transferTokens: tokens move', async () => {
  await fund(wallet.address, 2_500n, token);
  const params = { token_identifier: token, token_amount: 700, receiver_spark_address: other.address };
  const sent = await ask('transferTokens', { ...params, output_selection_strategy: 'SMALL_FIRST' });
  expect(sent).toEqual({ id: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(await ask('getBalance', undefined, other)).toMatchObject({
    balance: '0',
    token_balances: { [token]: { balance: '700' } },
  });
  expect(await refused('transferTokens', { ...params, token_amount: 1_801 })).toMatch(
    /^400 insufficient_funds/,
  );
  expect(await refused('transferTokens', { ...params, token_identifier: 'btkn1x' })).toMatch(
    /\/params\/token_identifier/,
  );
  const output = { previous_transaction_hash: '00'.repeat(32), previous_transaction_vout: 0 };
  expect(await refused('transferTokens', { ...params, selected_outputs: [output] })).toMatch(
    /^400 not_supported \/params\/selected_outputs/,
  );
});

test('a deposit on layer 1 is quoted, claimed at its quote, and claimed once', async () => {
  const { address } = await ask<{ address: string }>('getStaticDepositAddress');
  expect(address).toMatch(/^bc1p[02-9ac-hj-np-z]{58}$/);
  expect(await ask('getStaticDepositAddress')).toEqual({ address });
  const transactionId = await fund(address, 100_000n);
  const quote = await ask<{ signature: string }>('getClaimStaticDepositQuote', {
    transaction_id: transactionId,
  });
  expect(quote).toEqual({
    transaction_id: transactionId,
    output_index: 0,
    network: 'MAINNET',
    credit_amount_sats: 99_901,
    signature: expect.stringMatching(/^30[0-9a-f]+$/),
  });
  const claim = {
    transaction_id: transactionId,
    output_index: 0,
    credit_amount_sats: 99_901,
    signature: quote.signature,
  };
  expect(await refused('claimStaticDeposit', { ...claim, credit_amount_sats: 100_000 })).toMatch(
    /\/params\/credit_amount_sats: expected `99901` as quoted/,
  );
  expect(await refused('claimStaticDeposit', { ...claim, signature: '3000' })).toMatch(/\/params\/signature/);
  expect(await ask('claimStaticDeposit', claim)).toEqual({
    transfer_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  });
  expect(await satsOf(wallet)).toBe('99901');
  expect(await refused('claimStaticDeposit', claim)).toMatch(/^400 transaction_broadcast_failure/);
  expect(await satsOf(wallet)).toBe('99901');
  const unknown = { transaction_id: 'ab'.repeat(32) };
  expect(await refused('getClaimStaticDepositQuote', unknown)).toMatch(
    /^400 invalid_data \/params\/transaction_id/,
  );
  expect(await total()).toBe(100_000n);
});

test('the deposit address is the Taproot output of the identity key', () => {
  for (const fill of [1, 2, 3, 9]) {
    const secret = new Uint8Array(32).fill(fill);
    const { publicKey } = sparkSigner.walletKeys(secret, {});
    expect(sparkDepositAddress(publicKey!, 'MAINNET')).toBe(
      bitcoinTaprootSigner.walletKeys(secret, {}).address,
    );
  }
});

test('withdraw: with a quote, its fee added or deducted, or everything', async () => {
  await fund(wallet.address, 100_000n);
  const place = { onchain_address: layer1, amount_sats: 50_000 };
  const quote = await ask<SparkCoopExitFeeQuote>('getWithdrawalFeeQuote', place);
  const sats = (value: number) => ({ original_value: value, original_unit: 'SATOSHI' });
  expect(quote).toMatchObject({
    network: 'MAINNET',
    total_amount: sats(50_000),
    user_fee_fast: sats(150),
    l1_broadcast_fee_fast: sats(1_500),
    l1_broadcast_fee_slow: sats(450),
  });
  const quoted = { ...place, exit_speed: 'FAST', fee_quote_id: quote.id };
  expect(await refused('withdraw', { ...quoted, fee_amount_sats: 7 })).toMatch(
    /expected `1650` as quoted for FAST/,
  );
  expect(await refused('withdraw', { ...quoted, amount_sats: 50_001 })).toMatch(/\/params\/fee_quote_id/);
  expect(await refused('withdraw', { ...quoted, onchain_address: 'bcrt1qxx' })).toMatch(
    /\/params\/onchain_address/,
  );
  expect(await ask('withdraw', { ...quoted, fee_amount_sats: 1_650 })).toMatchObject({
    status: 'INITIATED',
    exit_speed: 'FAST',
    fee_quote_id: quote.id,
    fee: sats(150),
    l1_broadcast_fee: sats(1_500),
    coop_exit_txid: expect.stringMatching(/^[0-9a-f]{64}$/),
    expires_at: quote.expires_at,
  });
  expect(await satsOf(wallet)).toBe('48350');
  await ask('withdraw', {
    onchain_address: layer1,
    amount_sats: 10_000,
    exit_speed: 'SLOW',
    deduct_fee_from_withdrawal_amount: true,
  });
  expect(await satsOf(wallet)).toBe('38350');
  await waitSeconds(sandbox, 3600);
  expect(await refused('withdraw', quoted)).toMatch(/\/params\/fee_quote_id: .* still holds/);
  await ask('withdraw', { onchain_address: layer1, exit_speed: 'MEDIUM' });
  expect(await satsOf(wallet)).toBe('0');
  // 50000 + (10000 - 600) + (38350 - 1050)
  expect(await sandbox.chains.find(mainnet)!.balances(layer1, [null])).toEqual([96_700n]);
  expect(await total()).toBe(100_000n);
  expect(await refused('withdraw', { onchain_address: layer1, exit_speed: 'SLOW' })).toMatch(
    /^400 insufficient_funds/,
  );
});

test('on the other network the same key has another address and a separate balance', async () => {
  await fund(wallet.address, 10n);
  const body = { method: 'getBalance', network: 'REGTEST' } as const;
  const { body: answer } = await call(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body });
  expect(answer.data).toEqual({ balance: '0', token_balances: {} });
});

test('every rpc method of an owned wallet requires its owner', async () => {
  const { body: owned } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'spark', owner: { public_key: aliceKey.publicKey } },
  });
  const request = { path: { wallet_id: owned.id }, body: { method: 'getBalance' } } as const;
  expect((await refusal(sandbox, 'walletRpc', request)).status).toBe(401);
  const signed = await call(sandbox, 'walletRpc', request, { signWith: [aliceKey.privateKey] });
  expect(signed.body.data).toEqual({ balance: '0', token_balances: {} });
});

test('sent operations are signed with the identity key', async () => {
  await fund(wallet.address, 10n);
  const chain = sandbox.chains.find(mainnet)!;
  const broadcast = chain.broadcast.bind(chain);
  let sent = new Uint8Array();
  Object.assign(chain, {
    broadcast: (bytes: Uint8Array) => {
      sent = new Uint8Array(bytes);
      Object.assign(chain, { broadcast });
      return broadcast(bytes);
    },
  });
  await ask('transfer', { receiver_spark_address: other.address, amount_sats: 4 });
  const { operation, signature } = JSON.parse(Buffer.from(sent).toString()) as {
    operation: Record<string, string>;
    signature: string;
  };
  expect(operation).toMatchObject({
    from: wallet.address,
    to: other.address,
    amount: '4',
    network: 'MAINNET',
  });
  const head = '3036301006072a8648ce3d020106052b8104000a032200';
  const key = createPublicKey({
    key: Buffer.from(head + wallet.public_key, 'hex'),
    format: 'der',
    type: 'spki',
  });
  const bytes = Buffer.from(JSON.stringify(operation));
  expect(verify('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'hex'))).toBe(
    true,
  );
  // An operation of another wallet is refused.
  const forged = JSON.stringify({ operation: { ...operation, amount: '5' }, signature });
  expect(await broadcast(Buffer.from(forged))).toMatchObject({ isAccepted: false, reason: 'invalid' });
});
