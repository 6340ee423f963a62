import { createHash, createPublicKey, verify } from 'node:crypto';
import { actions, baseEncode, createTransaction, encodeTransaction, PublicKey, SCHEMA } from 'near-api-js';
import { describe, expect, test } from 'vitest';
import { ed25519PublicKey } from '../../../src/engine/crypto/ed25519.ts';
import { bytesToHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { decodeNearTransaction, nearActionNames } from '../../../src/engine/signing/near.ts';
import { signOffline } from '../../../src/engine/signing/sign-with-key.ts';

const secret = new Uint8Array(32).fill(7);
const key = ed25519PublicKey(secret);
const publicKey = PublicKey.fromString(`ed25519:${baseEncode(key)}`);

/** Signs and checks the layout of the signed transaction with OpenSSL. */
async function requireSigned(bytes: Uint8Array): Promise<void> {
  const { signed_transaction } = await signOffline('near_signTransaction', secret, {
    transaction: Buffer.from(bytes).toString('base64'),
  });
  const signed = Buffer.from(signed_transaction, 'base64');
  expect(signed.subarray(0, -64).toString('hex')).toBe(`${bytesToHex(bytes)}00`);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') };
  const hash = createHash('sha256').update(bytes).digest();
  expect(verify(null, hash, createPublicKey({ key: jwk, format: 'jwk' }), signed.subarray(-64))).toBe(true);
}

const refusalOf = (bytes: Uint8Array): string => {
  try {
    decodeNearTransaction(bytes);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was decoded');
};

const account = '0900000066726f6d2e61636d65';
const pk = `00${bytesToHex(key)}`;
const one = '01000000000000000000000000000000';
const signature = (type: string, size: number) => type + '11'.repeat(size);

/** The Borsh of a transaction with one action, in hex. */
function transaction(action: string): Uint8Array {
  return hexToBytes(`${account}${pk}0500000000000000${account}${'22'.repeat(32)}01000000${action}`);
}

// nearcore 2.13, core/primitives/src/action/mod.rs, the discriminants of `Action`
const nearcoreActions = [
  'CreateAccount',
  'DeployContract',
  'FunctionCall',
  'Transfer',
  'Stake',
  'AddKey',
  'DeleteKey',
  'DeleteAccount',
  'Delegate',
  'DeployGlobalContract',
  'UseGlobalContract',
  'DeterministicStateInit',
  'TransferToGasKey',
  'WithdrawFromGasKey',
  'DelegateV2',
];

describe('the list of actions', () => {
  test('the list of actions is that of nearcore', () => {
    expect(nearActionNames).toEqual(nearcoreActions);
  });

  test('the list of actions begins with that of near-api-js, which may know fewer', () => {
    const names = (SCHEMA.Action as { enum: { struct: object }[] }).enum.map(({ struct }) => {
      const [name = ''] = Object.keys(struct);
      return name === 'signedDelegate' ? 'delegate' : name;
    });
    expect(nearActionNames.map((name) => name.toLowerCase()).slice(0, names.length)).toEqual(
      names.map((name) => name.toLowerCase()),
    );
  });
});

const code = new Uint8Array([0, 97, 115, 109]);
const globals = [
  ['DeployGlobalContract by hash', actions.deployGlobalContract(code, 'codeHash')],
  ['DeployGlobalContract by account', actions.deployGlobalContract(code, 'accountId')],
  ['UseGlobalContract of an account', actions.useGlobalContract({ accountId: 'global.near' })],
  ['UseGlobalContract of a hash', actions.useGlobalContract({ codeHash: new Uint8Array(32).fill(3) })],
] as const;

test.each(globals)('%s, as near-api-js encodes it', async (name, action) => {
  const built = createTransaction('from.acme', publicKey, 'from.acme', 5n, [action], new Uint8Array(32));
  const bytes = encodeTransaction(built);
  expect(decodeNearTransaction(bytes).actions.map((each) => each.name)).toEqual([name.split(' ')[0]]);
  await requireSigned(bytes);
});

const delegated = (action: string) =>
  `08${account}${account}01000000${action}${'05'.padEnd(16, '0')}${'06'.padEnd(16, '0')}${pk}${signature('00', 64)}`;
const hashUse = `0a00${'33'.repeat(32)}`;
const stateInit = `0b0000${'33'.repeat(32)}02000000${'010000006b0100000076'.repeat(2)}${one}`;
const delegateV2 = (action: string, nonce: string, type = '00', size = 64) =>
  `0e00${account}${account}01000000${action}${nonce}${'06'.padEnd(16, '0')}${pk}${signature(type, size)}`;

// Layouts: nearcore 2.13 and near-kit, src/core/schema.ts
test.each([
  ['UseGlobalContract in a delegate action', 'Delegate', delegated(hashUse)],
  ['DeterministicStateInit', 'DeterministicStateInit', stateInit],
  ['DeterministicStateInit in a delegate action', 'Delegate', delegated(stateInit)],
  ['TransferToGasKey', 'TransferToGasKey', `0c${pk}${one}`],
  ['WithdrawFromGasKey', 'WithdrawFromGasKey', `0d${pk}${one}`],
  ['TransferToGasKey in a delegate action', 'Delegate', delegated(`0c${pk}${one}`)],
  ['a gas key with full access', 'AddKey', `05${pk}${'00'.repeat(8)}03${one}0500`],
  [
    'a gas key for function calls',
    'AddKey',
    `05${pk}${'00'.repeat(8)}02${one}050000${account}01000000010000006d`,
  ],
  ['a key of ML-DSA-65', 'DeleteKey', `0602${'44'.repeat(1952)}`],
  ['DelegateV2', 'DelegateV2', delegateV2(hashUse, `00${'05'.padEnd(16, '0')}`)],
  ['DelegateV2 of a gas key', 'DelegateV2', delegateV2(`03${one}`, `01${'05'.padEnd(16, '0')}0700`)],
  ['DelegateV2 by ML-DSA-65', 'DelegateV2', delegateV2(`03${one}`, `00${'05'.padEnd(16, '0')}`, '02', 3309)],
])('%s is signed', async (_, name, action) => {
  const bytes = transaction(action);
  expect(decodeNearTransaction(bytes)).toMatchObject({
    version: 0,
    actions: [{ name, encoded: `0x${action}` }],
  });
  await requireSigned(bytes);
});

test.each([
  ['a nonce', `00${'05'.padEnd(16, '0')}`, '00'],
  ['a nonce of a gas key, strict', `01${'05'.padEnd(16, '0')}0700`, '01'],
])('a transaction of version 1 with %s is signed', async (_, nonce, mode) => {
  const bytes = hexToBytes(`01${account}${pk}${nonce}${account}${'22'.repeat(32)}0100000003${one}${mode}`);
  expect(decodeNearTransaction(bytes)).toMatchObject({
    version: 1,
    nonce: 5n,
    actions: [{ name: 'Transfer' }],
  });
  await requireSigned(bytes);
});

test.each([
  ['an action of later', '0f', 'expected a known action, got variant 15'],
  [
    'a delegate action in another',
    delegated(delegated(`03${one}`)),
    'expected a known action, got variant 8',
  ],
  [
    'DelegateV2 in a delegate action',
    delegated(delegateV2('00', '')),
    'expected a known action, got variant 14',
  ],
  ['a permission of later', `05${pk}${'00'.repeat(8)}04`, 'expected a known permission, got variant 4'],
  ['a contract of later', '0a02', 'expected a known global contract, got variant 2'],
  ['a state init of later', '0b01', 'expected a known state init, got variant 1'],
  ['a map without its entries', `0b0000${'33'.repeat(32)}ffffffff`, 'expected 4294967295 items, got fewer'],
])('%s is refused by its form', (_, action, message) => {
  expect(refusalOf(transaction(action))).toBe(message);
});

test('a version of later is refused by its number', () => {
  expect(refusalOf(hexToBytes(`02${account}${pk}`))).toBe('expected a transaction of version 0 or 1, got 2');
});
