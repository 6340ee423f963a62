import { messageWithIntent } from '@mysten/sui/cryptography';
import { Transaction } from '@mysten/sui/transactions';
import { TronWeb } from 'tronweb';
import { expect, test } from 'vitest';
import { encodeTronRawData } from '../../../../src/engine/signing/tron/raw-data.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { allow, allowed, denied, deny, makeWallet, outcome, type Rule } from './policies.ts';

const when = (field_source: string, field: string, operator: string, value: string) =>
  ({ field_source, field, operator, value }) as Rule['conditions'][number];
const hash = `0x${'11'.repeat(32)}`;

function judgeIn(sandbox: TestSandbox, wallet: { id: string }, hash_function: string) {
  return (bytes: Uint8Array | string) => {
    const params =
      typeof bytes === 'string'
        ? { hash: bytes }
        : { bytes: Buffer.from(bytes).toString('base64'), encoding: 'base64', hash_function };
    return outcome(sandbox, 'rawSignWallet', { wallet, body: { params } });
  };
}

const payee = `41${'ab'.repeat(20)}`;
const tronRules = [
  allow('signTransactionBytes', when('tron_transaction', 'TransferContract.to_address', 'eq', payee)),
  allow('signRawMessageBytes', when('message', 'content', 'starts_with', 'hello')),
];

const suiPayment = when('sui_transfer_objects_command', 'amount', 'lte', '5');

function tronTransfer(wallet: { address: string }, to_address: string): Uint8Array {
  const contract = [
    {
      type: 'TransferContract' as const,
      owner_address: TronWeb.address.toHex(wallet.address),
      to_address,
      amount: 1,
    },
  ];
  const block = {
    ref_block_bytes: '1234',
    ref_block_hash: 'aabbccddeeff0011',
    expiration: 1_767_225_660_000,
  };
  return encodeTronRawData({ contract, ...block });
}

test('tron: the bytes of a transaction are evaluated as a transaction, all others as a message', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'tron', { rules: tronRules });
  const judge = judgeIn(sandbox, wallet, 'sha256');
  expect(await judge(tronTransfer(wallet, payee))).toBe(allowed);
  expect(await judge(tronTransfer(wallet, `41${'cd'.repeat(20)}`))).toBe(denied);
  expect(await judge(Buffer.from('hello world'))).toBe(allowed);
  expect(await judge(Buffer.from('goodbye'))).toBe(denied);
  // The content behind a hash is unknown.
  expect(await judge(hash)).toBe(denied);
});

test.each(['tron', 'sui'] as const)(
  '%s: permission to sign any message does not allow signing a transaction by its hash',
  async (chain) => {
    await using sandbox = await startSandbox();
    const judge = async (...rules: Rule[]) =>
      judgeIn(sandbox, await makeWallet(sandbox, chain, { rules }), 'sha256');
    expect(await (await judge(allow('signRawMessageBytes')))(hash)).toBe(denied);
    expect(await (await judge(allow('signRawMessageBytes')))(Buffer.from('text'))).toBe(allowed);
    expect(await (await judge(allow('signTransactionBytes')))(hash)).toBe(allowed);
    expect(await (await judge(allow('*'), deny('signTransactionBytes')))(hash)).toBe(denied);
    const byContent = chain === 'tron' ? tronRules : [allow('signTransactionBytes', suiPayment)];
    expect(await (await judge(...byContent))(hash)).toBe(denied);
    // A DENY on the content of a transaction matches one that cannot be decoded.
    const denying = { ...byContent[0]!, name: 'not that', action: 'DENY' } as const;
    expect(await (await judge(allow('signTransactionBytes'), denying))(hash)).toBe(denied);
  },
);

test('tron: bytes that a node accepts as a transaction are never a message', async () => {
  await using sandbox = await startSandbox();
  const wallet = await makeWallet(sandbox, 'tron', { rules: [allow('signRawMessageBytes')] });
  const judge = judgeIn(sandbox, wallet, 'sha256');
  const bytes = tronTransfer(wallet, payee);
  const behind = (...more: number[]) => Buffer.concat([bytes, Uint8Array.from(more)]);
  expect(await judge(bytes)).toBe(denied);
  // An unknown varint, fixed32 and fixed64, an unknown group, a varint in more bytes than it needs.
  expect(await judge(behind(0x98, 0x06, 0x01))).toBe(denied);
  expect(await judge(behind(0x9d, 0x06, 1, 2, 3, 4))).toBe(denied);
  expect(await judge(behind(0x99, 0x06, 1, 2, 3, 4, 5, 6, 7, 8))).toBe(denied);
  expect(await judge(behind(0x9b, 0x06, 0x08, 0x01, 0x9c, 0x06))).toBe(denied);
  expect(await judge(behind(0x70, 0x81, 0x80, 0x00))).toBe(denied);
  // The contract's own key, written long.
  const long = Buffer.from(Buffer.from(bytes).toString('latin1').replace('\x5a', '\xda\x00'), 'latin1');
  expect(long).toHaveLength(bytes.length + 1);
  expect(await judge(long)).toBe(denied);
  // Cut short it is no protobuf at all.
  expect(await judge(bytes.subarray(0, -1))).toBe(allowed);
  expect(await judge(Buffer.from('Zebra crossing'))).toBe(allowed);
});

test('sui: the bytes of a transaction are evaluated as a transaction, a personal message as a message', async () => {
  await using sandbox = await startSandbox();
  const recipient = `0x${'ab'.repeat(32)}`;
  const wallet = await makeWallet(sandbox, 'sui', {
    rules: [
      allow('signTransactionBytes', when('sui_transfer_objects_command', 'recipient', 'eq', recipient)),
      allow('signTransactionBytes', when('sui_transaction_command', 'commandName', 'eq', 'SplitCoins')),
      deny('signTransactionBytes', when('sui_transfer_objects_command', 'amount', 'gt', '100')),
      allow('signRawMessageBytes', when('message', 'byte_length', 'lte', '20')),
    ],
  });
  const judge = judgeIn(sandbox, wallet, 'blake2b256');
  const transactionOf = async (to: string, amount: number) => {
    const transaction = new Transaction();
    const [coin] = transaction.splitCoins(transaction.gas, [amount]);
    transaction.transferObjects([coin as never], to);
    transaction.setSender(wallet.address);
    transaction.setGasOwner(wallet.address);
    transaction.setGasPrice(1000);
    transaction.setGasBudget(5_000_000);
    const digest = '11111111111111111111111111111111';
    transaction.setGasPayment([{ objectId: `0x${'01'.repeat(32)}`, version: '7', digest }]);
    return messageWithIntent('TransactionData', await transaction.build());
  };
  expect(await judge(messageWithIntent('PersonalMessage', Buffer.from('hello')))).toBe(allowed);
  expect(await judge(messageWithIntent('PersonalMessage', Buffer.from('a'.repeat(30))))).toBe(denied);
  expect(await judge(hash)).toBe(denied);
  const payments = [
    await judge(await transactionOf(recipient, 100)),
    await judge(await transactionOf(recipient, 101)),
    await judge(await transactionOf(wallet.address, 1)),
  ];
  expect(payments).toEqual([allowed, denied, denied]);
  const truncated = (await transactionOf(recipient, 1)).subarray(0, -1);
  expect(await judge(truncated)).toBe(denied);
});

test('xrpl: a hash counts as a hidden transaction, so only conditions on time can hold', async () => {
  await using sandbox = await startSandbox();
  const until = {
    field_source: 'system',
    field: 'current_unix_timestamp',
    operator: 'lt',
    value: '4102444800',
  } as const;
  const timed = await makeWallet(sandbox, 'xrpl', { rules: [allow('xrpl_signTransaction', until)] });
  expect(await judgeIn(sandbox, timed, 'sha256')(hash)).toBe(allowed);
  const byType = when('xrpl_transaction', 'TransactionType', 'eq', 'Payment');
  const typed = await makeWallet(sandbox, 'xrpl', { rules: [allow('xrpl_signTransaction', byType)] });
  expect(await judgeIn(sandbox, typed, 'sha256')(hash)).toBe(denied);
  expect(await judgeIn(sandbox, typed, 'sha256')(Buffer.from('bytes'))).toBe(denied);
});

test.each(['cosmos', 'stellar', 'bitcoin-taproot', 'ton', 'starknet'] as const)(
  '%s: bytes and hashes are evaluated as signRawMessageBytes',
  async (chain) => {
    await using sandbox = await startSandbox();
    const small = `0x0${'1'.repeat(63)}`;
    const open = await makeWallet(sandbox, chain, { rules: [allow('signRawMessageBytes')] });
    expect(await judgeIn(sandbox, open, 'sha256')(small)).toBe(allowed);
    const closed = await makeWallet(sandbox, chain, { rules: [allow('exportPrivateKey')] });
    expect(await judgeIn(sandbox, closed, 'sha256')(small)).toBe(denied);
    const byText = await makeWallet(sandbox, chain, {
      rules: [allow('signRawMessageBytes', when('message', 'content', 'eq', 'yes'))],
    });
    expect(await judgeIn(sandbox, byText, 'sha256')(Buffer.from('no'))).toBe(denied);
  },
);

test.each(['ethereum', 'solana'] as const)('%s: only a rule for every method allows it', async (chain) => {
  await using sandbox = await startSandbox();
  const every = await makeWallet(sandbox, chain, { rules: [allow('*')] });
  expect(await judgeIn(sandbox, every, 'sha256')(hash)).toBe(allowed);
  const messages = await makeWallet(sandbox, chain, {
    rules: [allow(chain === 'ethereum' ? 'personal_sign' : 'signMessage')],
  });
  expect(await judgeIn(sandbox, messages, 'sha256')(hash)).toBe(denied);
});
