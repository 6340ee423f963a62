import { Keypair } from '@solana/web3.js';
import { expect, test } from 'vitest';
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
