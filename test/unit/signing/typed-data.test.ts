import { readFileSync } from 'node:fs';
import { TypedDataEncoder } from 'ethers';
import * as fc from 'fast-check';
import { hashTypedData as viemHash } from 'viem';
import { describe, expect, test } from 'vitest';
import { bytesTo0xHex } from '../../../src/engine/crypto/encoding.ts';
import { hashTypedData, type TypedData } from '../../../src/engine/signing/ethereum/typed-data.ts';
import { signOffline } from '../../../src/engine/signing/sign-with-key.ts';
import { InvalidTypedDataError } from '../../../src/engine/signing/signing-errors.ts';

interface Vector {
  readonly name: string;
  readonly typed_data: TypedData;
  readonly digest: string;
  readonly signature: string;
}

const vectors = JSON.parse(
  readFileSync(new URL('../../vectors/typed-data.json', import.meta.url), 'utf8'),
) as Vector[];
const secret = new Uint8Array(32).fill(0x46);
const sign = async (typed_data: TypedData) =>
  (await signOffline('eth_signTypedData_v4', secret, { typed_data })).signature;
const digest = (typedData: TypedData) => bytesTo0xHex(hashTypedData(typedData));

function ethersDigest({ domain, types: { EIP712Domain: _, ...types }, message }: TypedData): string {
  return TypedDataEncoder.hash(domain, types as never, message);
}

function viemDigest({ primary_type: primaryType, ...data }: TypedData): string {
  return viemHash({ ...data, primaryType } as never);
}

test.each(vectors)('$name is signed as eth-sig-util does', async ({ typed_data, ...expected }) => {
  expect({ digest: digest(typed_data), signature: await sign(typed_data) }).toEqual({
    digest: expected.digest,
    signature: expected.signature,
  });
});

/** Typed data with one `bytes` member in a struct that another one contains. */
function withNames(member: string, struct = 'Inner'): TypedData {
  return {
    domain: { name: 'X' },
    types: { Outer: [{ name: 'inner', type: `${struct}[]` }], [struct]: [{ name: member, type: 'bytes' }] },
    primary_type: 'Outer',
    message: { inner: [{ [member]: '0x12' }] },
  };
}

describe('names', () => {
  const names = [
    '',
    ' ',
    'a b',
    ' a',
    'a ',
    '0',
    '/',
    '~1',
    'A.B',
    'my-field',
    'a\0b',
    'é',
    '名',
    '"',
    '__proto',
  ];
  test.each(names)('of members as %j are signed as ethers and viem do', (name) => {
    const typedData = withNames(name);
    expect(digest(typedData)).toBe(ethersDigest(typedData));
    expect(digest(typedData)).toBe(viemDigest(typedData));
  });

  // viem finds only structs whose names are letters, digits and underscores; ethers is the judge of the others.
  test.each(['A.B', 'a-b', '0', '/', 'A:B', 'é', 'A\0'])(
    'names of structs as %j are signed as ethers does',
    (name) => {
      const typedData = withNames('x', name);
      expect(digest(typedData)).toBe(ethersDigest(typedData));
    },
  );

  test('of any letters are signed as ethers does, or have punctuation of encodeType', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'aB0 ._-/~:$\0é(),[]'), maxLength: 6 });
    await fc.assert(
      fc.property(text, text, (member, struct) => {
        fc.pre(struct !== 'Outer' && struct !== 'EIP712Domain');
        const typedData = withNames(member, struct);
        if (/[(),[\]]/.test(member + struct) || struct === '' || struct.includes(' ')) {
          expect(() => digest(typedData)).toThrow(InvalidTypedDataError);
        } else {
          expect(digest(typedData)).toBe(ethersDigest(typedData));
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test.each([
    ['a member', withNames('a\ud800')],
    ['a struct', withNames('a', 'A\udc00')],
  ])('names of %s that UTF-8 cannot carry are refused', (_, typedData) => {
    expect(() => digest(typedData)).toThrow(InvalidTypedDataError);
  });

  test('names are escaped in the pointers of refusals', () => {
    const typedData = { ...withNames('a/b~c'), message: { inner: [{ 'a/b~c': 5 }] } };
    expect(() => digest(typedData)).toThrow(expect.objectContaining({ field: '/message/inner/0/a~1b~0c' }));
  });
});

describe('types that are not declared', () => {
  const mail = (type: string, others: TypedData['types'] = {}): TypedData => ({
    domain: { name: 'X' },
    types: { Mail: [{ name: 'attachments', type }], ...others },
    primary_type: 'Mail',
    message: { attachments: [] },
  });

  // eth-account invalid_custom_typed_used_but_not_defined, geth expfail_nonexistant_type
  test.each([
    ['in an empty array', mail('Attachment[]')],
    ['in a struct without a value', mail('uint8[]', { Other: [{ name: 'x', type: 'Attachment' }] })],
    ['with the punctuation of encodeType', mail('uint256 a,address)Evil(uint8[]')],
    ['with a broken array', mail('uint8[')],
    ['with text after an array', mail('uint8[]x[]')],
    ['without a name', mail('[]')],
    ['named like a member of every object', mail('constructor[]')],
  ])('types that are not declared are refused %s, as in ethers', (_, typedData) => {
    expect(() => digest(typedData)).toThrow(InvalidTypedDataError);
    expect(() => ethersDigest(typedData)).toThrow();
  });
});

describe('null and absent members', () => {
  const member = (type: string, message: Record<string, unknown>): TypedData => ({
    domain: { name: 'X' },
    types: { P: [{ name: 'x', type }], S: [{ name: 'y', type: 'uint8' }] },
    primary_type: 'P',
    message,
  });
  const types = ['string', 'bytes', 'bytes4', 'uint8', 'bool', 'address', 'uint8[]', 'S[]', 'S[1]'];
  test.each(types)('null and absent members of type %s are refused', (type) => {
    expect(() => digest(member(type, { x: null }))).toThrow(InvalidTypedDataError);
    expect(() => digest(member(type, {}))).toThrow(InvalidTypedDataError);
  });

  test('null and absent members are not confused with a struct of zeros', () => {
    expect(digest(member('S', { x: null }))).not.toBe(digest(member('S', { x: { y: 0 } })));
    expect(() => digest(member('S', { x: 0 }))).toThrow(InvalidTypedDataError);
    expect(() => digest({ ...member('S', {}), message: null as never })).toThrow(InvalidTypedDataError);
  });
});

/** A bulk order of Seaport: a tree of `height` whose leaves are orders. Source: Seaport, bulk signatures. */
function bulkOrder(height: number): TypedData {
  const zero = `0x${'00'.repeat(20)}`;
  const item = { itemType: 0, token: zero, identifierOrCriteria: '0', startAmount: '0', endAmount: '0' };
  const order = (salt: number) => ({
    offerer: zero,
    zone: zero,
    offer: [item],
    consideration: [
      { ...item, recipient: zero },
      { ...item, recipient: zero },
    ],
    orderType: 0,
    startTime: '0',
    endTime: '0',
    zoneHash: `0x${'00'.repeat(32)}`,
    salt: String(salt),
    conduitKey: `0x${'00'.repeat(32)}`,
    counter: '0',
  });
  let level: unknown[] = Array.from({ length: 2 ** height }, (_, index) => order(index));
  while (level.length > 2) {
    level = Array.from({ length: level.length / 2 }, (_, index) => level.slice(2 * index, 2 * index + 2));
  }
  const itemType = Object.keys(item).map((name) => ({
    name,
    type: name === 'itemType' ? 'uint8' : name === 'token' ? 'address' : 'uint256',
  }));
  return {
    domain: { name: 'Seaport', version: '1.6', chainId: 1, verifyingContract: zero },
    types: {
      BulkOrder: [{ name: 'tree', type: `OrderComponents${'[2]'.repeat(height)}` }],
      OrderComponents: [
        { name: 'offerer', type: 'address' },
        { name: 'zone', type: 'address' },
        { name: 'offer', type: 'OfferItem[]' },
        { name: 'consideration', type: 'ConsiderationItem[]' },
        { name: 'orderType', type: 'uint8' },
        { name: 'startTime', type: 'uint256' },
        { name: 'endTime', type: 'uint256' },
        { name: 'zoneHash', type: 'bytes32' },
        { name: 'salt', type: 'uint256' },
        { name: 'conduitKey', type: 'bytes32' },
        { name: 'counter', type: 'uint256' },
      ],
      OfferItem: itemType,
      ConsiderationItem: [...itemType, { name: 'recipient', type: 'address' }],
    },
    primary_type: 'BulkOrder',
    message: { tree: level },
  };
}

describe('large typed data', () => {
  test.each([1, 6, 8])('a bulk order of height %i is signed as ethers does', (height) => {
    const typedData = bulkOrder(height);
    expect(JSON.stringify(typedData).length).toBeLessThan(1_048_576);
    expect(digest(typedData)).toBe(ethersDigest(typedData));
  });

  const withValue = (type: string, value: unknown): TypedData => ({
    domain: { name: 'X' },
    types: { P: [{ name: 'x', type }], S: [{ name: 's', type: 'string' }] },
    primary_type: 'P',
    message: { x: value },
  });

  test.each([
    ['a string of a million characters', 'string', 'é'.repeat(500_000)],
    ['bytes', 'bytes', `0x${'12'.repeat(520_000)}`],
    ['numbers', 'uint256[]', Array.from({ length: 20_000 }, (_, index) => index)],
    ['strings', 'string[]', Array.from({ length: 5_000 }, () => '')],
    ['structs', 'S[]', Array.from({ length: 3_000 }, () => ({ s: '' }))],
    ['types that are long', `string[${'0'.repeat(30_000)}1][]`, Array.from({ length: 3_000 }, () => [''])],
  ])('%s in large numbers are signed as viem does', (_, type, value) => {
    const typedData = withValue(type, value);
    expect(digest(typedData)).toBe(viemDigest(typedData));
  });

  test('large typed data: is hashed in slices, between which others run', async () => {
    let turns = 0;
    let isSigned = false;
    const count = () => {
      turns += 1;
      if (!isSigned) setImmediate(count);
    };
    setImmediate(count);
    await sign(
      withValue(
        'string[]',
        Array.from({ length: 50_000 }, () => ''),
      ),
    );
    isSigned = true;
    expect(turns).toBeGreaterThan(20);
  });
});
