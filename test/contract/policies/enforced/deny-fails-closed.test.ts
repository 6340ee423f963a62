import { PublicKey, TransactionInstruction, TransactionMessage, VersionedTransaction } from '@solana/web3.js';
import { recoverTypedDataAddress } from 'viem';
import { expect, test } from 'vitest';
import { call, refusal } from '../../../support/call.ts';
import { startSandbox } from '../../../support/sandbox.ts';
import { allow, allowed, denied, deny, makeWallet, outcome, payment, type Rule } from './policies.ts';

// A DENY evaluates what is signed, not how the request represents it.

const evil = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const friend = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const when = (field_source: string, field: string, operator: string, value: string) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];

const domainType = [
  { name: 'name', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
];
const permit = [
  { name: 'spender', type: 'address' },
  { name: 'value', type: 'uint256' },
];
const domain = { name: 'USD Coin', chainId: 1, verifyingContract: friend } as const;
const message = { spender: evil, value: '1' } as const;

function typedRequest(types: object) {
  const typed_data = { domain, types, primary_type: 'Permit', message };
  return { method: 'eth_signTypedData_v4', params: { typed_data } };
}

test('typed data under other names for the same types', async () => {
  await using sandbox = await startSandbox();
  const typed_data = { types: { Permit: permit }, primary_type: 'Permit' };
  const spender = {
    ...when('ethereum_typed_data_message', 'spender', 'eq', evil),
    typed_data,
  } as unknown as Rule['conditions'][number];
  const rules = [allow('*'), deny('eth_signTypedData_v4', spender)];
  const wallet = await makeWallet(sandbox, 'ethereum', { rules });
  const free = await makeWallet(sandbox, 'ethereum');
  const asWalletsSendIt = typedRequest({ Permit: permit, EIP712Domain: domainType });
  const withUnusedStruct = typedRequest({ Permit: permit, Unused: permit });
  for (const body of [typedRequest({ Permit: permit }), asWalletsSendIt, withUnusedStruct]) {
    expect(await outcome(sandbox, 'walletRpc', { wallet, body })).toBe(denied);
    // The signature would equal that of the denied message.
    const signed = await call(sandbox, 'walletRpc', { path: { wallet_id: free.id }, body: body as never });
    const { signature } = signed.body.data as { signature: `0x${string}` };
    const signer = await recoverTypedDataAddress({
      domain,
      types: { Permit: permit },
      primaryType: 'Permit',
      message: { spender: evil, value: 1n },
      signature,
    });
    expect(signer).toBe(free.address);
  }
  const other = { Permit: [...permit].reverse() };
  expect(await outcome(sandbox, 'walletRpc', { wallet, body: typedRequest(other) })).toBe(allowed);
});

test('contract creations and transactions for every chain', async () => {
  await using sandbox = await startSandbox();
  const strangers = deny('eth_signTransaction', when('ethereum_transaction', 'to', 'neq', friend));
  const mainnet = deny('eth_signTransaction', when('ethereum_transaction', 'chain_id', 'eq', '1'));
  const toFriends = await makeWallet(sandbox, 'ethereum', { rules: [allow('*'), strangers] });
  const offMainnet = await makeWallet(sandbox, 'ethereum', { rules: [allow('*'), mainnet] });
  // PUSH20 evil SELFDESTRUCT
  const initCode = `0x73${evil.slice(2)}ff`;
  const signs = (wallet: { id: string }, transaction: object) =>
    outcome(sandbox, 'walletRpc', {
      wallet,
      body: payment({ nonce: 0, gas_limit: 100_000, ...transaction }),
    });
  expect(await signs(toFriends, { to: evil, value: 1 })).toBe(denied);
  expect(await signs(toFriends, { data: initCode, value: 1 })).toBe(denied);
  expect(await signs(toFriends, { to: friend, value: 1 })).toBe(allowed);
  expect(await signs(offMainnet, { to: evil, chain_id: 1 })).toBe(denied);
  const everywhere = { to: evil, type: 0, chain_id: undefined, gas_price: 1 };
  expect(await signs(offMainnet, everywhere)).toBe(denied);
  expect(await signs(offMainnet, { to: evil, chain_id: 10 })).toBe(allowed);
});

test('transfers to an address in another case', async () => {
  await using sandbox = await startSandbox();
  const blocked = deny('transfer', when('action_request_body', 'destination.address', 'eq', evil));
  const wallet = await makeWallet(sandbox, 'ethereum', { rules: [allow('*'), blocked] });
  const transfer = async (address: string) => {
    const body = {
      source: { asset: 'eth', amount: '0.1', chain: 'base' },
      destination: { address },
    } as const;
    return (await refusal(sandbox, 'transferFromWallet', { path: { wallet_id: wallet.id }, body })).body.code;
  };
  const upperCase = `0x${evil.slice(2).toUpperCase()}`;
  for (const address of [evil, evil.toLowerCase(), upperCase])
    expect(await transfer(address)).toBe('policy_violation');
  // The wallet is empty, so an allowed transfer would fail with another error.
  expect(await transfer(friend)).toBe('insufficient_funds');
});

test('Solana token transfers with and without a check of the decimals', async () => {
  await using sandbox = await startSandbox();
  const large = deny(
    'signTransaction',
    when('solana_token_program_instruction', 'Transfer.amount', 'gt', '5'),
  );
  const wallet = await makeWallet(sandbox, 'solana', { rules: [allow('*'), large] });
  const owner = new PublicKey(wallet.address);
  const [from, mint, to] = [1, 2, 3].map((byte) => new PublicKey(new Uint8Array(32).fill(byte))) as [
    PublicKey,
    PublicKey,
    PublicKey,
  ];
  const token = (data: readonly number[], ...accounts: readonly PublicKey[]) =>
    new TransactionInstruction({
      programId: new PublicKey('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'),
      keys: accounts.map((pubkey) => ({ pubkey, isSigner: pubkey === owner, isWritable: true })),
      data: Buffer.from(data),
    });
  // Source: spl-token instruction.rs. 3 is Transfer, 12 is TransferChecked with the decimals at the end.
  const plain = (amount: number) => token([3, amount, 0, 0, 0, 0, 0, 0, 0], from, to, owner);
  const checked = (amount: number) => token([12, amount, 0, 0, 0, 0, 0, 0, 0, 6], from, mint, to, owner);
  const signs = (instruction: TransactionInstruction) => {
    const message = new TransactionMessage({
      payerKey: owner,
      recentBlockhash: to.toBase58(),
      instructions: [instruction],
    }).compileToV0Message();
    const transaction = Buffer.from(new VersionedTransaction(message).serialize()).toString('base64');
    const body = { method: 'signTransaction', params: { transaction, encoding: 'base64' } };
    return outcome(sandbox, 'walletRpc', { wallet, body });
  };
  expect(await signs(plain(6))).toBe(denied);
  expect(await signs(checked(6))).toBe(denied);
  expect(await signs(checked(5))).toBe(allowed);
});
