import { readFileSync } from 'node:fs';
import { sha256 } from '@noble/hashes/sha2.js';
import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js';
import { recoverAddress, Wallet } from 'ethers';
import { decode, encode } from 'ripple-binary-codec';
import { describe, expect, test } from 'vitest';
import { encodeAccountID } from 'xrpl';
import { bytesToHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { type ChainType, derivePrivateKey } from '../../../src/engine/signing/chains.ts';
import {
  isOfflineMethod,
  type OfflineMethod,
  signOffline,
} from '../../../src/engine/signing/sign-with-key.ts';
import {
  InvalidSolanaTransactionError,
  SigningInputError,
} from '../../../src/engine/signing/signing-errors.ts';
import { bytesField, int64Field } from '../../../src/engine/signing/tron/protobuf.ts';
import { decodeTronRawData, encodeTronRawData } from '../../../src/engine/signing/tron/raw-data.ts';

const mnemonic =
  'abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about';
const document = JSON.parse(readFileSync(new URL('../../../openapi/openapi.json', import.meta.url), 'utf8'));
const examples =
  document.paths['/v1/wallets/{wallet_id}/rpc'].post.requestBody.content['application/json'].examples;
const example = (name: string) => examples[name].value.params;

async function refusalOf(
  chainType: ChainType,
  method: OfflineMethod,
  params: unknown,
): Promise<SigningInputError> {
  const secret = await derivePrivateKey(chainType, { mnemonic });
  const refusal = await signOffline(method, secret, params as never).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(SigningInputError);
  expect((refusal as Error).message).not.toContain(bytesToHex(secret));
  return refusal as SigningInputError;
}

test('methods that need a network are not signed here', () => {
  for (const method of [
    'eth_sendTransaction',
    'signAndSendTransaction',
    'getBalance',
    'exportPrivateKey',
    'toString',
  ]) {
    expect(isOfflineMethod(method)).toBe(false);
  }
});

describe('solana', () => {
  const wire = new Uint8Array(Buffer.from(example('signTransaction').transaction, 'base64'));
  const legacyMessage = 1 + 64;
  const changed = (position: number, byte: number) =>
    wire.map((old, index) => (index === position ? byte : old));

  test.each([
    ['is empty', new Uint8Array()],
    ['is one byte', Uint8Array.of(1)],
    ['ends early', wire.subarray(0, -1)],
    ['goes on', Uint8Array.of(...wire, 0)],
    ['spells its signature count long', Uint8Array.of(0x81, 0x00, ...wire.subarray(1))],
    ['has fewer slots than signers', Uint8Array.of(0, ...wire.subarray(legacyMessage))],
    ['needs no signature', changed(legacyMessage, 0)],
    ['has only read-only signers', changed(legacyMessage + 1, 1)],
    ['has more read-only accounts than accounts', changed(legacyMessage + 2, 9)],
    ['has an unknown version', changed(legacyMessage, 0x81)],
    ['runs the payer as a program', changed(wire.indexOf(2, wire.length - 20), 0)],
    ['is larger than the cluster takes', new Uint8Array(4097)],
  ])('solana: refuses a transaction that %s', async (_what, bytes) => {
    const transaction = Buffer.from(bytes).toString('base64');
    const refusal = await refusalOf('solana', 'signTransaction', { transaction, encoding: 'base64' });
    expect(refusal).toBeInstanceOf(InvalidSolanaTransactionError);
    expect(refusal.field).toBe('/transaction');
  });

  test.each(['not base64!', 'YWJj\n', 'YQ'])('solana: refuses `%s` as base64', async (transaction) => {
    const refusal = await refusalOf('solana', 'signTransaction', { transaction, encoding: 'base64' });
    expect(refusal).toBeInstanceOf(InvalidSolanaTransactionError);
  });

  test('solana: returns a transaction unchanged of which the wallet is no required signer, even when it is an account', async () => {
    const stranger = Keypair.fromSeed(new Uint8Array(32).fill(9)).publicKey;
    const wallet = new PublicKey('HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk');
    const transfer = SystemProgram.transfer({ fromPubkey: stranger, toPubkey: wallet, lamports: 1 });
    const transaction = new Transaction({ feePayer: stranger, recentBlockhash: stranger.toBase58() }).add(
      transfer,
    );
    const bytes = transaction.serialize({ requireAllSignatures: false }).toString('base64');
    const params = { transaction: bytes, encoding: 'base64' } as const;
    expect(
      await signOffline('signTransaction', await derivePrivateKey('solana', { mnemonic }), params),
    ).toEqual({ signed_transaction: bytes, encoding: 'base64' });
  });

  test('solana: keeps the placeholder blockhash of ones', async () => {
    const transaction = new Transaction({
      feePayer: new PublicKey('HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk'),
      recentBlockhash: '1'.repeat(32),
    });
    const given = transaction.serialize({ requireAllSignatures: false });
    const { signed_transaction } = await signOffline(
      'signTransaction',
      await derivePrivateKey('solana', { mnemonic }),
      {
        transaction: given.toString('base64'),
        encoding: 'base64',
      },
    );
    const signed = Buffer.from(signed_transaction, 'base64');
    expect(signed.subarray(65).equals(given.subarray(65))).toBe(true);
    expect(Transaction.from(signed).verifySignatures()).toBe(true);
  });

  test('solana: refuses a message that is not base64', async () => {
    const refusal = await refusalOf('solana', 'signMessage', { message: 'hello!', encoding: 'base64' });
    expect(refusal.field).toBe('/message');
  });
});

describe('tron', () => {
  const { raw_data } = example('tron_signTransaction');
  const [transfer] = raw_data.contract;

  test.each([
    ['/raw_data/contract/0/owner_address', { contract: [{ ...transfer, owner_address: '41' }] }],
    [
      '/raw_data/contract/0/to_address',
      { contract: [{ ...transfer, to_address: 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH' }] },
    ],
    ['/raw_data/contract/0/amount', { contract: [{ ...transfer, amount: -1 }] }],
    ['/raw_data/contract/0/amount', { contract: [{ ...transfer, amount: 1.5 }] }],
    ['/raw_data/contract', { contract: [] }],
    ['/raw_data/contract', { contract: [transfer, transfer] }],
    ['/raw_data/ref_block_bytes', { ref_block_bytes: '12' }],
    ['/raw_data/ref_block_hash', { ref_block_hash: 'zz' }],
    ['/raw_data/expiration', { expiration: -1 }],
    ['/raw_data/fee_limit', { fee_limit: 2 ** 53 }],
    ['/raw_data/data', { data: 'memo' }],
  ])('tron: names %s', async (field, change) => {
    const params = { raw_data: { ...raw_data, ...change } };
    expect((await refusalOf('tron', 'tron_signTransaction', params)).field).toBe(field);
  });

  test('a transaction of another account is signed by the key that has a permission of it', async () => {
    const secret = await derivePrivateKey('tron', { mnemonic });
    const contract = [{ ...transfer, owner_address: transfer.to_address }];
    const params = { raw_data: { ...raw_data, contract } };
    const { signed_transaction: signed } = await signOffline('tron_signTransaction', secret, params as never);
    const rawData = bytesToHex(encodeTronRawData(params.raw_data as never));
    expect(signed.slice(0, -130)).toBe(rawData);
    const hash = `0x${bytesToHex(sha256(hexToBytes(rawData)))}`;
    const account = recoverAddress(hash, `0x${signed.slice(-130)}`);
    expect(account).toBe(new Wallet(`0x${bytesToHex(secret)}`).address);
  });

  test('bytes that are not a transaction, and unknown transactions, are refused', () => {
    expect(decodeTronRawData(Buffer.from('hello'))).toBeUndefined();
    expect(decodeTronRawData(new Uint8Array())).toBeUndefined();
    expect(decodeTronRawData(int64Field(8, 1n))).toBeUndefined();
    const freeze = bytesField(11, int64Field(1, 54n));
    expect(() => decodeTronRawData(freeze)).toThrow(
      'expected one TRON transfer or contract call, got FreezeBalanceV2Contract',
    );
  });
});

describe('xrpl', () => {
  const { transaction: prefixed } = example('xrpl_signTransaction');
  const fields = decode(prefixed.slice(8));
  const blob = (change: object) => encode({ ...fields, ...change });

  test.each([
    ['another account', blob({ Account: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh' })],
    ['the key of another', blob({ SigningPubKey: `02${'11'.repeat(32)}` })],
    ['a signature', blob({ TxnSignature: 'AABB' })],
    ['no type', '2400000001'],
    ['bytes behind its end', `${prefixed}00`],
    ['its last byte cut', prefixed.slice(0, -2)],
    ['half a byte', prefixed.slice(0, -1)],
    ['the prefix of multi-signing', `534D5400${prefixed.slice(8)}`],
    ['nothing', ''],
    ['only the prefix', '53545800'],
    ['no hex', 'zz'],
  ])('xrpl: refuses a transaction with %s', async (_what, transaction) => {
    const refusal = await refusalOf('xrpl', 'xrpl_signTransaction', { transaction, encoding: 'hex' });
    expect(refusal.field).toBe('/transaction');
  });

  // The codec would need minutes for each of these. `F9EA` begins a list and an object in it, `E1F1` ends both.
  test.each([
    [
      'nested 2,000 deep',
      `120000${'F9EA'.repeat(1000)}${'E1F1'.repeat(1000)}`,
      '10 nested objects and arrays',
    ],
    ['nested 2,000 deep and not closed', `120000${'F9EA'.repeat(1000)}`, '10 nested objects and arrays'],
    ['of 4,000 objects', `120000F9${'EAE1'.repeat(4000)}F1`, '1600 fields'],
    [
      'of 1,700 path steps',
      `120000011201${`${'11'.repeat(20)}01`.repeat(1700)}${'11'.repeat(20)}00`,
      '100 steps of paths',
    ],
    ['of 140 KB', `120000${'F9EA'.repeat(70_000)}`, '40960 bytes'],
  ])('xrpl: refuses a transaction %s before it is decoded', async (_what, transaction, most) => {
    const refusal = await refusalOf('xrpl', 'xrpl_signTransaction', { transaction, encoding: 'hex' });
    expect(refusal.message).toContain(`expected at most ${most}`);
  });

  test('xrpl: accepts a list of 32 signers and the longest memo', async () => {
    const secret = await derivePrivateKey('xrpl', { mnemonic });
    const SignerEntries = Array.from({ length: 32 }, (_, index) => ({
      SignerEntry: { Account: encodeAccountID(new Uint8Array(20).fill(index + 1)), SignerWeight: 1 },
    }));
    const transaction = encode({
      TransactionType: 'SignerListSet',
      Account: fields.Account,
      Fee: '12',
      Sequence: 1,
      SignerQuorum: 32,
      SignerEntries,
      Memos: [{ Memo: { MemoData: 'AB'.repeat(1000) } }],
    });
    const signed = await signOffline('xrpl_signTransaction', secret, { transaction, encoding: 'hex' });
    expect(JSON.stringify(signed)).toContain('AB'.repeat(1000));
  });

  test('xrpl: treats an empty key as absent', async () => {
    const secret = await derivePrivateKey('xrpl', { mnemonic });
    const [empty, given] = await Promise.all(
      [blob({ SigningPubKey: '' }), prefixed].map((transaction) =>
        signOffline('xrpl_signTransaction', secret, { transaction, encoding: 'hex' }),
      ),
    );
    expect(empty).toEqual(given);
  });
});

describe('aptos and near', () => {
  const aptos: string = example('aptos_signTransaction').transaction;
  const near: string = example('near_signTransaction').transaction;
  const nearBytes = Buffer.from(near, 'base64');

  test.each([
    ['another sender', `0x11${aptos.slice(4)}`],
    ['its last byte cut', aptos.slice(0, -2)],
    ['bytes behind its end', `${aptos}00`],
    ['an unknown payload', `${aptos.slice(0, 2 + 80)}01${aptos.slice(2 + 82)}`],
    ['nothing but the prefix', '0x'],
  ])('aptos refuses a transaction with %s', async (_what, transaction) => {
    const refusal = await refusalOf('aptos', 'aptos_signTransaction', { transaction });
    expect(refusal.field).toBe('/transaction');
  });

  test.each([
    ['the key of another', Buffer.from(nearBytes.map((byte, index) => (index === 70 ? byte ^ 1 : byte)))],
    ['a key of another curve', Buffer.from(nearBytes.map((byte, index) => (index === 68 ? 1 : byte)))],
    ['its last byte cut', nearBytes.subarray(0, -1)],
    ['bytes behind its end', Buffer.concat([nearBytes, Buffer.alloc(1)])],
    [
      'an unknown action',
      Buffer.from(nearBytes.map((byte, index) => (index === nearBytes.length - 17 ? 99 : byte))),
    ],
    [
      'more actions than bytes',
      Buffer.from(nearBytes.map((byte, index) => (index === nearBytes.length - 18 ? 255 : byte))),
    ],
    ['a name that is no UTF-8', Buffer.from(nearBytes.map((byte, index) => (index === 4 ? 0xff : byte)))],
  ])('near refuses a transaction with %s', async (_what, bytes) => {
    const transaction = bytes.toString('base64');
    const refusal = await refusalOf('near', 'near_signTransaction', { transaction });
    expect(refusal.field).toBe('/transaction');
  });
});

test('spark refuses a message that is not valid UTF-8', async () => {
  expect((await refusalOf('spark', 'signMessageWithIdentityKey', { message: '\ud800' })).field).toBe(
    '/message',
  );
});
