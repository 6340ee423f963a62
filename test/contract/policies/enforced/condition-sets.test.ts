import { messageWithIntent } from '@mysten/sui/cryptography';
import { Transaction as SuiTransaction } from '@mysten/sui/transactions';
import { Keypair } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { classicAddressToXAddress, encode as encodeXrpl } from 'xrpl';
import { call } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, allowed, denied, deny, makeWallet, outcome, payment, type Rule } from './policies.ts';

/** Address number `n`, in a mix of cases. */
const address = (n: number) => `0x${(n * 7 + 0xabcdef).toString(16).padStart(40, 'aB')}`;

async function makeSet(sandbox: TestSandbox, values: readonly string[]): Promise<string> {
  const { body: set } = await call(sandbox, 'createConditionSet', { body: { name: 'Under test' } });
  for (let at = 0; at < values.length; at += 100) {
    const body = values.slice(at, at + 100).map((value) => ({ value }));
    await call(sandbox, 'addConditionSetItems', { path: { condition_set_id: set.id }, body });
  }
  return set.id;
}

const inSet = (field_source: string, field: string, value: string) =>
  ({ field_source, field, operator: 'in_condition_set', value }) as Rule['conditions'][number];

test('a set of 1,000 addresses is searched, ignoring case', async () => {
  await using sandbox = await startSandbox();
  const set = await makeSet(
    sandbox,
    Array.from({ length: 1000 }, (_, n) => address(n)),
  );
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('eth_signTransaction', inSet('ethereum_transaction', 'to', set))],
  });
  const judge = (to: string) => outcome(sandbox, 'walletRpc', { wallet, body: payment({ to }) });
  for (const n of [0, 1, 99, 100, 500, 999]) {
    expect(await judge(address(n))).toBe(allowed);
    expect(await judge(address(n).toLowerCase())).toBe(allowed);
  }
  expect(await judge(address(1000))).toBe(denied);
  expect(await judge(`0x${'0'.repeat(40)}`)).toBe(denied);
});

test('added and removed values take effect immediately, and a deleted set contains nothing', async () => {
  await using sandbox = await startSandbox();
  const set = await makeSet(sandbox, [address(1)]);
  const open = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('eth_signTransaction', inSet('ethereum_transaction', 'to', set))],
  });
  const closed = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('*'), deny('eth_signTransaction', inSet('ethereum_transaction', 'to', set))],
  });
  const judge = async (n: number) => [
    await outcome(sandbox, 'walletRpc', { wallet: open, body: payment({ to: address(n) }) }),
    await outcome(sandbox, 'walletRpc', { wallet: closed, body: payment({ to: address(n) }) }),
  ];
  const path = { condition_set_id: set };
  expect(await judge(1)).toEqual([allowed, denied]);
  expect(await judge(2)).toEqual([denied, allowed]);
  await call(sandbox, 'replaceConditionSetItems', { path, body: [{ value: address(2) }] });
  expect(await judge(1)).toEqual([denied, allowed]);
  expect(await judge(2)).toEqual([allowed, denied]);
  await call(sandbox, 'deleteConditionSet', { path });
  expect(await judge(2)).toEqual([denied, allowed]);
});

test('every call of a batch is looked up', async () => {
  await using sandbox = await startSandbox();
  const set = await makeSet(
    sandbox,
    Array.from({ length: 99 }, (_, n) => address(n)),
  );
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('eth_signTransaction', inSet('ethereum_transaction', 'to', set))],
  });
  const judge = (count: number) => {
    const calls = Array.from({ length: count }, (_, n) => ({ to: address(n) }));
    return outcome(sandbox, 'walletRpc', { wallet, body: payment({ type: 118, calls }) });
  };
  expect(await judge(99)).toBe(allowed);
  expect(await judge(100)).toBe(denied);
});

test('numbers match in decimal and in hex, Solana addresses exactly', async () => {
  await using sandbox = await startSandbox();
  const values = await makeSet(sandbox, ['1000', '0x7D0', '0']);
  const wallet = await makeWallet(sandbox, 'ethereum', {
    rules: [allow('eth_signTransaction', inSet('ethereum_transaction', 'value', values))],
  });
  const judge = (value?: number | string) =>
    outcome(sandbox, 'walletRpc', { wallet, body: payment(value === undefined ? {} : { value }) });
  for (const value of [1000, '0x3e8', 2000, '0x7d0', 0]) expect(await judge(value)).toBe(allowed);
  expect(await judge()).toBe(allowed);
  expect(await judge(1001)).toBe(denied);

  const program = Keypair.generate().publicKey.toBase58();
  const programs = await makeSet(sandbox, [program.toLowerCase(), '11111111111111111111111111111111']);
  const solana = await makeWallet(sandbox, 'solana', {
    rules: [allow('signTransaction', inSet('solana_program_instruction', 'programId', programs))],
  });
  const { PublicKey, SystemProgram, Transaction, TransactionInstruction } = await import('@solana/web3.js');
  const payer = new PublicKey(solana.address);
  const send = (programId: string) => {
    const transaction = new Transaction({
      feePayer: payer,
      recentBlockhash: PublicKey.default.toBase58(),
    }).add(new TransactionInstruction({ programId: new PublicKey(programId), keys: [] }));
    const wire = transaction.serialize({ requireAllSignatures: false }).toString('base64');
    const params = { transaction: wire, encoding: 'base64' };
    return outcome(sandbox, 'walletRpc', { wallet: solana, body: { method: 'signTransaction', params } });
  };
  expect(await send(SystemProgram.programId.toBase58())).toBe(allowed);
  expect(await send(program)).toBe(denied);
});

/** A request that signs a transfer of 1 sun on Tron. */
function tronTransfer(address: string, to: string) {
  const [owner_address, to_address] = [address, to].map((text) => TronWeb.address.toHex(text));
  const contract = [{ type: 'TransferContract', owner_address, to_address, amount: 1 }];
  const block = {
    ref_block_bytes: '1234',
    ref_block_hash: 'aabbccddeeff0011',
    expiration: 1_767_225_660_000,
  };
  return { method: 'tron_signTransaction', params: { raw_data: { contract, ...block } } };
}

/** A request that signs a transfer of 1 MIST on Sui. */
async function suiTransfer(address: string, to: string) {
  const transaction = new SuiTransaction();
  const [coin] = transaction.splitCoins(transaction.gas, [1]);
  transaction.transferObjects([coin as never], to);
  transaction.setSender(address);
  transaction.setGasPrice(1000);
  transaction.setGasBudget(5_000_000);
  const digest = '11111111111111111111111111111111';
  transaction.setGasPayment([{ objectId: `0x${'7'.repeat(64)}`, version: '1', digest }]);
  const message = messageWithIntent('TransactionData', await transaction.build());
  const bytes = Buffer.from(message).toString('base64');
  return { params: { bytes, encoding: 'base64', hash_function: 'blake2b256' } };
}

describe('a set contains a value in every notation of its chain', () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  /** What an ALLOW and a DENY with the set decide on a request. */
  async function decisions(
    chain: 'ethereum' | 'tron' | 'sui' | 'xrpl',
    condition: { method: Rule['method']; field_source: string; field: string },
    items: readonly string[],
    bodyOf: (wallet: { address: string }) => Promise<object> | object,
  ) {
    const set = await makeSet(sandbox, items);
    const on = inSet(condition.field_source, condition.field, set);
    const rules = [[allow(condition.method, on)], [allow(condition.method), deny(condition.method, on)]];
    const found: string[] = [];
    for (const own of rules) {
      const wallet = await makeWallet(sandbox, chain, { rules: own });
      const body = await bodyOf(wallet);
      const operation = chain === 'sui' ? 'rawSignWallet' : 'walletRpc';
      found.push(await outcome(sandbox, operation, { wallet, body }));
    }
    return found;
  }
  const contained = [allowed, denied];
  const missing = [denied, allowed];

  test('numbers with zeros in front, in decimal and in hex', async () => {
    const value = {
      method: 'eth_signTransaction',
      field_source: 'ethereum_transaction',
      field: 'value',
    } as const;
    const judge = (item: string, wei: number) =>
      decisions('ethereum', value, [item], () => payment({ to: address(1), value: wei }));
    for (const item of ['0100', '0x64', '0x0064', '0X64'.toLowerCase()])
      expect(await judge(item, 100)).toEqual(contained);
    for (const item of ['10', '1000', '0x640', '0x6400']) expect(await judge(item, 100)).toEqual(missing);
    for (const item of ['0', '00', '0x0', '0x00', '-0']) expect(await judge(item, 0)).toEqual(contained);
    for (const item of ['1', '-1', '0x1']) expect(await judge(item, 0)).toEqual(missing);
  });

  test('EVM addresses in any letter case', async () => {
    const to = { method: 'eth_signTransaction', field_source: 'ethereum_transaction', field: 'to' } as const;
    const usdc = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
    for (const item of [usdc, usdc.toLowerCase(), `0x${usdc.slice(2).toUpperCase()}`]) {
      expect(await decisions('ethereum', to, [item], () => payment({ to: usdc }))).toEqual(contained);
    }
    expect(await decisions('ethereum', to, [usdc.slice(0, -1)], () => payment({ to: usdc }))).toEqual(
      missing,
    );
  });

  test('Tron addresses in base58 and in hex of any letter case', async () => {
    const to = {
      method: 'tron_signTransaction',
      field_source: 'tron_transaction',
      field: 'TransferContract.to_address',
    } as const;
    // The USDT contract. Its hex notation is what tronweb answers.
    const text = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
    const hex = TronWeb.address.toHex(text);
    const judge = (item: string) =>
      decisions('tron', to, [item], (wallet) => tronTransfer(wallet.address, text));
    for (const item of [
      text,
      hex.toLowerCase(),
      hex.toUpperCase(),
      `${hex.slice(0, 20).toUpperCase()}${hex.slice(20).toLowerCase()}`,
    ]) {
      expect(await judge(item)).toEqual(contained);
    }
    for (const item of [text.toLowerCase(), `0x${hex.slice(2)}`]) expect(await judge(item)).toEqual(missing);
  });

  test('Sui addresses with any number of zeros in front', async () => {
    const to = {
      method: 'signTransactionBytes',
      field_source: 'sui_transfer_objects_command',
      field: 'recipient',
    } as const;
    const judge = (item: string) =>
      decisions('sui', to, [item], (wallet) => suiTransfer(wallet.address, `0x${'0'.repeat(60)}0aBc`));
    for (const item of ['0xabc', '0x0abc', '0x00ABC', `0x${'0'.repeat(60)}0abc`]) {
      expect(await judge(item)).toEqual(contained);
    }
    for (const item of ['0xabc0', '0xab', 'abc']) expect(await judge(item)).toEqual(missing);
  });

  test('amounts, currencies and addresses of the XRP Ledger', async () => {
    const field_source = 'xrpl_transaction';
    const method = 'xrpl_signTransaction';
    const issuer = 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh';
    const judge = (field: string, item: string, currency = 'USD') =>
      decisions('xrpl', { method, field_source, field }, [item], ({ address: Account }) => {
        const LimitAmount = { value: '100', currency, issuer };
        const fields = { TransactionType: 'TrustSet', Account, Fee: '10', Sequence: 1, LimitAmount };
        return { method, params: { transaction: encodeXrpl(fields as never), encoding: 'hex' } };
      });
    for (const item of ['100', '100.00', '0100', '100.0']) {
      expect(await judge('TrustSet.LimitAmount.value', item)).toEqual(contained);
    }
    for (const item of ['10', '1', '100.01', '1000']) {
      expect(await judge('TrustSet.LimitAmount.value', item)).toEqual(missing);
    }
    const usd = '0000000000000000000000005553440000000000';
    for (const item of ['USD', usd])
      expect(await judge('TrustSet.LimitAmount.currency', item)).toEqual(contained);
    expect(await judge('TrustSet.LimitAmount.currency', 'usd')).toEqual(missing);
    const rlusd = '524C555344000000000000000000000000000000';
    for (const item of [rlusd, rlusd.toLowerCase(), `524c${rlusd.slice(4)}`]) {
      expect(await judge('TrustSet.LimitAmount.currency', item, rlusd)).toEqual(contained);
    }
    for (const item of [issuer, classicAddressToXAddress(issuer, false, false)]) {
      expect(await judge('TrustSet.LimitAmount.issuer', item)).toEqual(contained);
    }
  });
});
