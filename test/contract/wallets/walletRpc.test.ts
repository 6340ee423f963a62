import { createPublicKey, verify } from 'node:crypto';
import {
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import {
  type Hex,
  keccak256,
  parseTransaction,
  recoverAddress,
  recoverMessageAddress,
  recoverTransactionAddress,
  recoverTypedDataAddress,
  serializeTransaction,
  type TransactionSerialized,
} from 'viem';
import { expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { WalletRpcRequest } from '../../../src/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const acmeSolana = { wallet_id: 'ext_wal_acme-solana' };
const alices = { wallet_id: 'ext_wal_alice' };
const hello = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;
const stranger = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';

async function addressOf(sandbox: TestSandbox, path: { wallet_id: string }): Promise<string> {
  return (await call(sandbox, 'getWallet', { path })).body.address;
}

async function sign(sandbox: TestSandbox, path: { wallet_id: string }, body: WalletRpcRequest) {
  const { body: answer } = await call(sandbox, 'walletRpc', { path, body });
  expect(answer.method).toBe(body.method);
  return answer.data as Record<string, string>;
}

/** RFC 8410: the key follows the fixed head of its SubjectPublicKeyInfo. */
function ed25519Key(key: PublicKey) {
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.toBytes()]);
  return createPublicKey({ key: spki, format: 'der', type: 'spki' });
}

test('personal_sign: viem recovers the wallet, from text and from hex', async () => {
  await using sandbox = await startSandbox();
  const address = await addressOf(sandbox, acme);
  const text = await sign(sandbox, acme, hello);
  expect(text).toEqual({ signature: expect.stringMatching(/^0x[0-9a-f]{130}$/), encoding: 'hex' });
  expect(await recoverMessageAddress({ message: 'hello', signature: text.signature as Hex })).toBe(address);
  for (const message of ['68656c6c6f', '0x68656c6c6f']) {
    const params = { message, encoding: 'hex' } as const;
    expect(await sign(sandbox, acme, { method: 'personal_sign', params })).toEqual(text);
  }
});

test('secp256k1_sign: viem recovers the wallet from the digest', async () => {
  await using sandbox = await startSandbox();
  const hash = keccak256('0x1234');
  const { signature, encoding } = await sign(sandbox, acme, { method: 'secp256k1_sign', params: { hash } });
  expect(encoding).toBe('hex');
  expect(await recoverAddress({ hash, signature: signature as Hex })).toBe(await addressOf(sandbox, acme));
});

test('secp256k1_sign: a shorter number is padded with zeros on the left', async () => {
  await using sandbox = await startSandbox();
  for (const hash of ['0x1', '0x12', `0x${'7'.repeat(63)}`] as const) {
    const { signature } = await sign(sandbox, acme, { method: 'secp256k1_sign', params: { hash } });
    const padded = `0x${BigInt(hash).toString(16).padStart(64, '0')}` as const;
    expect(await recoverAddress({ hash: padded, signature: signature as Hex })).toBe(
      await addressOf(sandbox, acme),
    );
  }
});

test('eth_signTypedData_v4: viem recovers the wallet', async () => {
  await using sandbox = await startSandbox();
  const typed = {
    domain: { name: 'Custos', version: '1', chainId: 8453, verifyingContract: stranger },
    types: {
      Note: [
        { name: 'to', type: 'address' },
        { name: 'text', type: 'string' },
      ],
    },
    message: { to: stranger, text: 'paid' },
  } as const;
  const { domain, message } = typed;
  const types = { Note: [...typed.types.Note] };
  const body = {
    method: 'eth_signTypedData_v4',
    params: { typed_data: { domain, types, message, primary_type: 'Note' } },
  } as const;
  const { signature } = await sign(sandbox, acme, body);
  const recovered = await recoverTypedDataAddress({
    ...typed,
    primaryType: 'Note',
    signature: signature as Hex,
  });
  expect(recovered).toBe(await addressOf(sandbox, acme));
});

test('eth_signTransaction: the bytes equal those of viem for the same fields, and nothing is filled in', async () => {
  await using sandbox = await startSandbox();
  const address = await addressOf(sandbox, acme);
  const transaction = { to: stranger, value: '0x10', chain_id: 1, gas_limit: 21_000 };
  const body = { method: 'eth_signTransaction', params: { transaction } } as const;
  const { signed_transaction: signed, encoding } = await sign(sandbox, acme, body);
  expect(encoding).toBe('rlp');
  const serialized = signed as TransactionSerialized;
  expect(await recoverTransactionAddress({ serializedTransaction: serialized })).toBe(address);
  const { r, s, yParity, v: _, ...fields } = parseTransaction(serialized);
  const again = serializeTransaction(
    { type: 'eip1559', chainId: 1, to: stranger, value: 16n, gas: 21_000n },
    { r: r as Hex, s: s as Hex, yParity: yParity as number },
  );
  expect(signed).toBe(again);
  expect(fields).toMatchObject({ type: 'eip1559', chainId: 1, value: 16n, gas: 21_000n });
});

test('signMessage: node:crypto verifies it under the wallet’s address', async () => {
  await using sandbox = await startSandbox();
  const message = Buffer.from('hello');
  const params = { message: message.toString('base64'), encoding: 'base64' } as const;
  const { signature = '' } = await sign(sandbox, acmeSolana, { method: 'signMessage', params });
  const wallet = new PublicKey(await addressOf(sandbox, acmeSolana));
  expect(verify(null, message, ed25519Key(wallet), Buffer.from(signature, 'base64'))).toBe(true);
});

test('signTransaction: web3.js verifies legacy and version 0, message untouched', async () => {
  await using sandbox = await startSandbox();
  const wallet = new PublicKey(await addressOf(sandbox, acmeSolana));
  const transfer = SystemProgram.transfer({ fromPubkey: wallet, toPubkey: PublicKey.default, lamports: 5 });
  const recentBlockhash = PublicKey.default.toBase58();
  const signWire = async (wire: Uint8Array) => {
    const params = { transaction: Buffer.from(wire).toString('base64'), encoding: 'base64' } as const;
    const data = await sign(sandbox, acmeSolana, { method: 'signTransaction', params });
    return Buffer.from(data.signed_transaction as string, 'base64');
  };

  const legacy = new Transaction({ feePayer: wallet, recentBlockhash }).add(transfer);
  const signedLegacy = Transaction.from(await signWire(legacy.serialize({ requireAllSignatures: false })));
  expect(signedLegacy.verifySignatures()).toBe(true);
  expect(signedLegacy.serializeMessage()).toEqual(legacy.serializeMessage());

  const message = new TransactionMessage({ payerKey: wallet, recentBlockhash, instructions: [transfer] });
  const unsigned = new VersionedTransaction(message.compileToV0Message());
  const signed = VersionedTransaction.deserialize(await signWire(unsigned.serialize()));
  expect(signed.message.serialize()).toEqual(unsigned.message.serialize());
  const [signature = new Uint8Array()] = signed.signatures;
  expect(verify(null, unsigned.message.serialize(), ed25519Key(wallet), signature)).toBe(true);
});

test('the wallet in the path signs, whatever the body contains', async () => {
  await using sandbox = await startSandbox();
  const body = { ...hello, address: stranger, wallet_id: 'another', chain_type: 'ethereum' } as const;
  expect(await sign(sandbox, acme, body)).toEqual(await sign(sandbox, acme, hello));
});

test('a wallet with an owner signs only for the owner and its signers', async () => {
  await using sandbox = await startSandbox();
  const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
    body: { public_keys: [bobKey.publicKey] },
  });
  await call(
    sandbox,
    'updateWallet',
    { path: alices, body: { additional_signers: [{ signer_id: quorum.id }] } },
    { signWith: [aliceKey.privateKey] },
  );
  const request = { path: alices, body: hello };
  expect(await refusal(sandbox, 'walletRpc', request)).toMatchObject({
    status: 401,
    body: { code: 'missing_or_empty_authorization_header' },
  });
  const byCarol = await refusal(sandbox, 'walletRpc', request, { signWith: [carolKey.privateKey] });
  expect(byCarol).toMatchObject({ status: 401, body: { code: 'zero_correct_authorization_signatures' } });
  const address = await addressOf(sandbox, alices);
  for (const { privateKey } of [aliceKey, bobKey]) {
    const { body } = await call(sandbox, 'walletRpc', request, { signWith: [privateKey] });
    const { signature } = body.data as { signature: Hex };
    expect(await recoverMessageAddress({ message: 'hello', signature })).toBe(address);
  }
});

test.each([
  {
    what: 'a method of another chain',
    path: acmeSolana,
    body: hello,
    code: 'invalid_data',
    error: /^\/method: .*`solana` \(`signMessage`, .*got `personal_sign`$/,
  },
  {
    what: 'a digest that is too long',
    path: acme,
    body: { method: 'secp256k1_sign', params: { hash: `0x${'12'.repeat(33)}` } },
    code: 'invalid_data',
    error: /^\/params\/hash: expected 32 bytes of hex, got 33$/,
  },
  {
    what: 'a negative quantity',
    path: acme,
    body: {
      method: 'eth_signTransaction',
      params: { transaction: { to: stranger, chain_id: 1, value: -1 } },
    },
    code: 'invalid_data',
    error: /^\/params\/transaction\/value: /,
  },
  {
    what: 'bytes that are no Solana transaction',
    path: acmeSolana,
    body: { method: 'signTransaction', params: { transaction: 'AAAA', encoding: 'base64' } },
    code: 'invalid_solana_transaction',
    error: /^\/params\/transaction: /,
  },
  {
    what: 'a signature of a smart account that the wallet does not have',
    path: acme,
    body: { ...hello, caip2: 'eip155:8453', signature_options: { type: 'erc1271' } },
    code: 'not_supported',
    error: /create_smart_wallet/,
  },
])('refuses $what', async ({ path, body, code, error }) => {
  await using sandbox = await startSandbox();
  expect(await refusal(sandbox, 'walletRpc', { path, body })).toMatchObject({
    status: 400,
    body: { code, error: expect.stringMatching(error) },
  });
});

test('an absent wallet is not found', async () => {
  await using sandbox = await startSandbox();
  const path = { wallet_id: 'z'.repeat(24) };
  expect(await refusal(sandbox, 'walletRpc', { path, body: hello })).toEqual({
    status: 404,
    body: { error: 'Wallet not found' },
  });
});
