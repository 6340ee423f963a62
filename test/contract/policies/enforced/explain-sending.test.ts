import { PublicKey, SystemProgram, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { encodeAbiParameters, encodeFunctionData, parseAbi, parseAbiParameters } from 'viem';
import { beforeAll, describe, expect, test } from 'vitest';
import type { WalletRpcRequest } from '../../../../src/generated/schemas.ts';
import { attempt } from '../../../support/call.ts';
import { analyzePolicies } from '../../../support/policy-analysis.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, deny, makeWallet, type Rule } from './policies.ts';

// Explaining a send request without its chain yields the same decision as sending it.
const shop = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const thief = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const base = 'eip155:8453';
const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const tron = 'tron:0x2b6653dc';
const when = (field_source: string, field: string, operator: string, value: string) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  return () => sandbox[Symbol.asyncDispose]();
});

async function makeFunded(chain: 'ethereum' | 'solana' | 'tron', caip2: string, rules: Rule[]) {
  const wallet = await makeWallet(sandbox, chain, { rules });
  const rawAmount = 10n ** 18n;
  await sandbox.chains.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount });
  return wallet;
}

/** The decision of the explanation, after checking that it equals that of the request, including the trace. */
async function explainedAsSent(wallet: { id: string }, request: object): Promise<string> {
  const { decision, policies } = await analyzePolicies(sandbox, 'explainPolicy', {
    wallet_id: wallet.id,
    request,
  });
  const sent = await attempt(sandbox, 'walletRpc', {
    path: { wallet_id: wallet.id },
    body: request as WalletRpcRequest,
  });
  const { code, data } = sent.body as { code?: string; data?: { decision?: { units: object[] } } };
  expect(decision).toBe(sent.status === 200 ? 'allowed' : code === 'policy_violation' ? 'denied' : sent.body);
  // The chain fills in the fee when the request is executed.
  const withoutFee = (unit: object) => ({ ...unit, fee: undefined });
  if (decision === 'denied')
    expect(policies[0]!.units.map(withoutFee)).toEqual(data!.decision!.units.map(withoutFee));
  return decision;
}

describe('ethereum', () => {
  const rules = (['eth_sendTransaction', 'wallet_sendCalls'] as const).map((method) =>
    allow(
      method,
      when('ethereum_transaction', 'to', 'eq', shop),
      when('ethereum_transaction', 'value', 'lte', '5'),
      when('ethereum_transaction', 'chain_id', 'eq', '8453'),
    ),
  );
  const send = (transaction: object, more: object = {}) => ({
    method: 'eth_sendTransaction',
    caip2: base,
    params: { transaction },
    ...more,
  });

  test('a transaction, with any fields left to the chain', async () => {
    const wallet = await makeFunded('ethereum', base, rules);
    expect(await explainedAsSent(wallet, send({ to: shop, value: '0x5' }))).toBe('allowed');
    expect(await explainedAsSent(wallet, send({ to: shop, value: '0x6' }))).toBe('denied');
    expect(await explainedAsSent(wallet, send({ to: thief, value: 1, gas_price: '0x3b9aca00' }))).toBe(
      'denied',
    );
    const fees = { max_fee_per_gas: '0x77359400', max_priority_fee_per_gas: 1 };
    expect(await explainedAsSent(wallet, send({ to: thief, nonce: 9, type: 2, ...fees }))).toBe('denied');
  });

  test('bytes that are appended to the calldata', async () => {
    const abi = parseAbi(['function note(uint256 number)']);
    const named = { ...when('ethereum_calldata', 'note.number', 'eq', '7'), abi };
    const wallet = await makeFunded('ethereum', base, [allow('eth_sendTransaction', named as never)]);
    const data = encodeFunctionData({ abi, args: [7n] });
    expect(await explainedAsSent(wallet, send({ to: shop, data }))).toBe('allowed');
    const suffix = { experimental_data_suffix: '0xff' };
    // ERC-8021: not a part of the call.
    expect(await explainedAsSent(wallet, send({ to: shop, data }, suffix))).toBe('allowed');
    const calls = { method: 'wallet_sendCalls', caip2: base, params: { calls: [{ to: shop, data }] } };
    const batches = await makeFunded('ethereum', base, [allow('wallet_sendCalls', named as never)]);
    for (const sponsor of [false, true])
      expect(await explainedAsSent(batches, { ...calls, sponsor, ...suffix })).toBe('allowed');
    // The same bytes within the calldata, and bytes that say what is called.
    expect(await explainedAsSent(wallet, send({ to: shop, data: `${data}ff` }))).toBe('denied');
    expect(await explainedAsSent(wallet, send({ to: shop, data: `${data}ff` }, suffix))).toBe('denied');
    const denied = [allow('eth_sendTransaction'), deny('eth_sendTransaction', named as never)];
    const other = await makeFunded('ethereum', base, denied);
    for (const cut of [0, 1, 3, 4, 5]) {
      const [before, after] = [data.slice(0, 2 + 2 * cut), data.slice(2 + 2 * cut)];
      const parts = { experimental_data_suffix: `0x${after}` };
      expect(await explainedAsSent(other, send({ to: shop, data: before }, parts))).toBe('denied');
    }
  });

  test('calls, and those inside a batch that the account runs on itself', async () => {
    const wallet = await makeFunded('ethereum', base, rules);
    const calls = (...to: string[]) => ({
      method: 'wallet_sendCalls',
      caip2: base,
      params: { calls: to.map((address) => ({ to: address, value: '0x1' })) },
    });
    expect(await explainedAsSent(wallet, calls(shop, shop))).toBe('allowed');
    expect(await explainedAsSent(wallet, calls(shop, thief))).toBe('denied');
    for (const more of [{ sponsor: true }, { sponsor: true, experimental_data_suffix: '0xff' }]) {
      expect(await explainedAsSent(wallet, { ...calls(shop, shop), ...more })).toBe('allowed');
      expect(await explainedAsSent(wallet, { ...calls(thief), ...more })).toBe('denied');
      expect(await explainedAsSent(wallet, { ...send({ to: thief, value: '0x1' }), ...more })).toBe('denied');
    }
    // The wallet may call itself, but not to pay the thief.
    const own = await makeFunded('ethereum', base, [
      allow('eth_signTransaction', when('ethereum_transaction', 'value', 'lte', '5')),
    ]);
    const batch = (value: bigint) => ({
      method: 'eth_signTransaction',
      params: { transaction: { to: own.address, data: batchOf(thief, value), chain_id: 8453 } },
    });
    expect(await explainedAsSent(own, batch(5n))).toBe('allowed');
    expect(await explainedAsSent(own, batch(6n))).toBe('denied');
  });

  const batchOf = (to: `0x${string}`, value: bigint) =>
    encodeFunctionData({
      abi: parseAbi(['function execute(bytes32 mode, bytes executionData)']),
      args: [
        `0x01${'00'.repeat(31)}`,
        encodeAbiParameters(parseAbiParameters('(address to, uint256 value, bytes data)[]'), [
          [{ to, value, data: '0x' }],
        ]),
      ],
    });
});

test('solana: a transfer that waits for its blockhash', async () => {
  const payee = new PublicKey(new Uint8Array(32).fill(7));
  const wallet = await makeFunded('solana', solana, [
    allow(
      'signAndSendTransaction',
      when('solana_system_program_instruction', 'Transfer.to', 'eq', payee.toBase58()),
      when('solana_system_program_instruction', 'Transfer.lamports', 'lte', '1000000'),
    ),
  ]);
  const payerKey = new PublicKey(wallet.address);
  const send = (lamports: number) => {
    const instructions = [SystemProgram.transfer({ fromPubkey: payerKey, toPubkey: payee, lamports })];
    const recentBlockhash = PublicKey.default.toBase58();
    const message = new TransactionMessage({ payerKey, recentBlockhash, instructions }).compileToV0Message();
    const transaction = Buffer.from(new VersionedTransaction(message).serialize()).toString('base64');
    return { method: 'signAndSendTransaction', caip2: solana, params: { transaction, encoding: 'base64' } };
  };
  expect(await explainedAsSent(wallet, send(1_000_000))).toBe('allowed');
  expect(await explainedAsSent(wallet, send(1_000_001))).toBe('denied');
});

test('tron: a transfer that waits for its reference block', async () => {
  const payee = `41${'ab'.repeat(20)}`;
  const wallet = await makeFunded('tron', tron, [
    allow('tron_sendTransaction', when('tron_transaction', 'TransferContract.amount', 'lte', '5')),
  ]);
  const send = (amount: number) => {
    const owner_address = TronWeb.address.toHex(wallet.address);
    const contract = [{ type: 'TransferContract', owner_address, to_address: payee, amount }];
    return { method: 'tron_sendTransaction', caip2: tron, params: { raw_data: { contract } } };
  };
  expect(await explainedAsSent(wallet, send(5))).toBe('allowed');
  expect(await explainedAsSent(wallet, send(6))).toBe('denied');
});

test('sent requests are replayed against a draft as they were sent', async () => {
  const wallet = await makeFunded('ethereum', base, [
    allow('eth_sendTransaction', when('ethereum_transaction', 'value', 'lte', '5')),
  ]);
  for (const value of ['0x1', '0x5', '0x6']) {
    const body = { method: 'eth_sendTransaction', caip2: base, params: { transaction: { to: shop, value } } };
    await attempt(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body: body as WalletRpcRequest });
  }
  await sandbox.services.uses.flush();
  const replay = (limit: string) =>
    analyzePolicies(sandbox, 'replayPolicy', {
      wallet_id: wallet.id,
      draft: {
        chain_type: 'ethereum',
        rules: [allow('eth_sendTransaction', when('ethereum_transaction', 'value', 'lte', limit))],
      },
    });
  expect(await replay('5')).toMatchObject({ judged: 3, changed: 0, skipped: 0 });
  expect(await replay('1')).toMatchObject({ judged: 3, newly_denied: 1, newly_allowed: 0 });
  expect(await replay('9')).toMatchObject({ judged: 3, newly_denied: 0, newly_allowed: 1 });
});
