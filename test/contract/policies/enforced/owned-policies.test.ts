import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../../mocks/authorization-keys.ts';
import type { CreatePolicyRequest, WalletChainType } from '../../../../src/generated/schemas.ts';
import { call } from '../../../support/call.ts';
import { fund } from '../../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, allowed, denied, makeWallet, outcome, type Rule } from './policies.ts';

// The vault judges a policy that has an owner a second time, by what it is asked to sign. It must come to the same
// result for each way in which a transaction is built; if it refused one, the response would be 500.

const base = 'eip155:8453';
const friend = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const stranger = '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** A wallet of Alice's, under a policy of Bob's. */
async function walletUnder(chain_type: WalletChainType, rules: readonly Rule[]) {
  const owner = { public_key: bobKey.publicKey };
  const body = {
    version: '1.0',
    name: 'Of Bob',
    chain_type,
    rules: [...rules],
    owner,
  } as CreatePolicyRequest;
  const { id } = (await call(sandbox, 'createPolicy', { body })).body;
  const wallet = await makeWallet(sandbox, chain_type, { owner: { public_key: aliceKey.publicKey } });
  const signed = { signWith: [aliceKey.privateKey] };
  const change = { path: { wallet_id: wallet.id }, body: { policy_ids: [id] } };
  await call(sandbox, 'updateWallet', change, signed);
  const judge = (request: object) => outcome(sandbox, 'walletRpc', { wallet, body: request, ...signed });
  return { ...wallet, judge };
}

test('transactions, batches and user operations on EVM chains', async () => {
  const to = { field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: friend } as const;
  const methods = ['eth_sendTransaction', 'wallet_sendCalls', 'eth_signTransaction'] as const;
  const wallet = await walletUnder('ethereum', [
    ...methods.map((method) => allow(method, to)),
    allow('eth_sign7702Authorization'),
  ]);
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  for (const sponsor of [false, true]) {
    const sends = (receiver: string) => ({
      ...{ method: 'eth_sendTransaction', caip2: base, sponsor },
      params: { transaction: { to: receiver, value: 1 } },
    });
    const calls = (...receivers: string[]) => ({
      ...{ method: 'wallet_sendCalls', caip2: base, sponsor },
      params: { calls: receivers.map((receiver) => ({ to: receiver, value: 1, data: '0x' })) },
    });
    expect(await wallet.judge(sends(friend))).toBe(allowed);
    expect(await wallet.judge(sends(stranger))).toBe(denied);
    expect(await wallet.judge({ ...sends(friend), experimental_data_suffix: '0x1234' })).toBe(allowed);
    expect(await wallet.judge(calls(friend, friend))).toBe(allowed);
    expect(await wallet.judge(calls(friend))).toBe(allowed);
    expect(await wallet.judge({ ...calls(friend), experimental_data_suffix: '0x1234' })).toBe(allowed);
    expect(await wallet.judge(calls(friend, stranger))).toBe(denied);
  }
  const authorization = { contract: stranger, chain_id: 8453 };
  expect(await wallet.judge({ method: 'eth_sign7702Authorization', params: authorization })).toBe(allowed);
});

test('transfers, whose content only the server judges', async () => {
  const receiver = {
    ...{ field_source: 'action_request_body', field: 'destination.address' },
    ...{ operator: 'eq', value: friend },
  } as const;
  const wallet = await walletUnder('ethereum', [allow('transfer', receiver as never)]);
  await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  const transfer = (address: string) =>
    call(
      sandbox,
      'transferFromWallet',
      {
        path: { wallet_id: wallet.id },
        body: { source: { asset: 'eth', amount: '0.01', chain: 'base' }, destination: { address } },
      },
      { signWith: [aliceKey.privateKey] },
    );
  await expect(transfer(friend)).resolves.toHaveProperty('status', 200);
  await expect(transfer(stranger)).rejects.toThrow('policy_violation');
});

test('transactions on Solana and Tron', async () => {
  const [one, other] = [Keypair.generate().publicKey, Keypair.generate().publicKey];
  const wallet = await walletUnder('solana', [
    allow('signAndSendTransaction', {
      ...{ field_source: 'solana_system_program_instruction', field: 'Transfer.to' },
      ...{ operator: 'eq', value: one.toBase58() },
    } as const),
  ]);
  await fund(sandbox, wallet.address, { chain: 'solana', asset: 'sol', rawAmount: 10_000_000n });
  const pays = (receiver: PublicKey, sponsor: boolean) => {
    const fromPubkey = new PublicKey(wallet.address);
    const transaction = new Transaction({ feePayer: fromPubkey, recentBlockhash: '1'.repeat(32) } as never);
    transaction.add(SystemProgram.transfer({ fromPubkey, toPubkey: receiver, lamports: 1_000_000 }));
    const wire = transaction.serialize({ requireAllSignatures: false }).toString('base64');
    return {
      ...{ method: 'signAndSendTransaction', caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', sponsor },
      params: { transaction: wire, encoding: 'base64' },
    };
  };
  for (const sponsor of [false, true]) {
    expect(await wallet.judge(pays(one, sponsor))).toBe(allowed);
    expect(await wallet.judge(pays(other, sponsor))).toBe(denied);
  }

  const [first, second] = [`41${'00'.repeat(19)}01`, `41${'00'.repeat(19)}02`];
  const tron = await walletUnder('tron', [
    allow('tron_sendTransaction', {
      ...{ field_source: 'tron_transaction', field: 'TransferContract.to_address' },
      ...{ operator: 'eq', value: first },
    } as const),
  ]);
  await fund(sandbox, tron.address, { chain: 'tron', asset: 'trx', rawAmount: 10_000_000n });
  const contract = { type: 'TransferContract', owner_address: hexOf(tron.address), amount: 1000 };
  const sends = (to_address: string) => ({
    method: 'tron_sendTransaction',
    params: { raw_data: { contract: [{ ...contract, to_address }] } },
  });
  expect(await tron.judge(sends(first))).toBe(allowed);
  expect(await tron.judge(sends(second))).toBe(denied);
});

/** A Tron address in hex, as transactions have it. */
function hexOf(address: string): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  const number = [...address].reduce((sum, letter) => sum * 58n + BigInt(alphabet.indexOf(letter)), 0n);
  return number.toString(16).padStart(50, '0').slice(0, 42);
}
