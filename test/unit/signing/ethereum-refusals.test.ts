import { describe, expect, test } from 'vitest';
import { type OfflineMethod, signOffline } from '../../../src/engine/signing/sign-with-key.ts';
import { SigningInputError } from '../../../src/engine/signing/signing-errors.ts';

const secret = new Uint8Array(32).fill(3);
const to = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const entry = { contract: to, chain_id: 1, nonce: 0, r: '0x01', s: '0x01', y_parity: 0 };

/** The field and message of the refusal; fails when there is none. */
async function refusalOf(
  method: OfflineMethod,
  params: unknown,
): Promise<{ field: string; message: string }> {
  const outcome = await signOffline(method, secret, params as never).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(SigningInputError);
  const { field, message } = outcome as SigningInputError;
  expect(message).not.toContain('03'.repeat(32));
  return { field, message };
}

describe('eth_signTransaction', () => {
  test.each([
    ['a negative number', '/value', { chain_id: 1, to, value: -1 }],
    ['a fraction', '/value', { chain_id: 1, to, value: 1.5 }],
    ['a number beyond exactness', '/value', { chain_id: 1, to, value: 2 ** 53 }],
    ['a value of 257 bits', '/value', { chain_id: 1, to, value: `0x1${'0'.repeat(64)}` }],
    ['a decimal text', '/value', { chain_id: 1, to, value: '100' }],
    ['a negative text', '/value', { chain_id: 1, to, value: '-0x1' }],
    ['an empty number', '/value', { chain_id: 1, to, value: '0x' }],
    ['a nonce of 65 bits', '/nonce', { chain_id: 1, to, nonce: `0x1${'0'.repeat(16)}` }],
    ['gas of 65 bits', '/gas_limit', { chain_id: 1, to, gas_limit: `0x1${'0'.repeat(16)}` }],
    ['no chain id', '/chain_id', { to }],
    ['chain id 0', '/chain_id', { to, chain_id: 0 }],
    ['a chain id whose `v` is not exact', '/chain_id', { type: 0, to, chain_id: 4503599627370478 }],
    ['half a byte of data', '/data', { chain_id: 1, to, data: '0xabc' }],
    ['a short address', '/to', { chain_id: 1, to: '0x1234' }],
    ['an address that is not hex', '/to', { chain_id: 1, to: `0x${'zz'.repeat(20)}` }],
    ['another sender', '/from', { chain_id: 1, to, from: to }],
    ['an unknown type', '/type', { type: 3, chain_id: 1, to }],
    ['a gas price in type 2', '/gas_price', { type: 2, chain_id: 1, to, gas_price: 1 }],
    ['a fee cap in type 0', '/max_fee_per_gas', { type: 0, chain_id: 1, to, max_fee_per_gas: 1 }],
    [
      'authorizations in type 2',
      '/authorization_list',
      { type: 2, chain_id: 1, to, authorization_list: [entry] },
    ],
    [
      'a tip above the cap',
      '/max_priority_fee_per_gas',
      { chain_id: 1, to, max_fee_per_gas: 1, max_priority_fee_per_gas: 2 },
    ],
    ['type 4 without authorizations', '/authorization_list', { type: 4, chain_id: 1, to }],
    ['type 4 that creates a contract', '/to', { type: 4, chain_id: 1, authorization_list: [entry] }],
    [
      'an r of 33 bytes',
      '/authorization_list/0/r',
      { type: 4, chain_id: 1, to, authorization_list: [{ ...entry, r: `0x${'11'.repeat(33)}` }] },
    ],
    [
      'a bad contract',
      '/authorization_list/0/contract',
      { type: 4, chain_id: 1, to, authorization_list: [{ ...entry, contract: '0x' }] },
    ],
  ])('eth_signTransaction: refuses %s at /transaction%s', async (_what, field, transaction) => {
    expect((await refusalOf('eth_signTransaction', { transaction })).field).toBe(`/transaction${field}`);
  });

  const tempo = { type: 118, chain_id: 4217, calls: [{ to }] };
  test.each([
    ['no chain id', '/chain_id', { ...tempo, chain_id: undefined }],
    ['no calls', '/calls', { ...tempo, calls: [] }],
    ['a call to nowhere', '/calls/1/to', { ...tempo, calls: [{ to }, { to: '0x' }] }],
    ['half a byte of data', '/calls/0/data', { ...tempo, calls: [{ to, data: '0x1' }] }],
    ['a nonce key of 193 bits', '/nonce_key', { ...tempo, nonce_key: `0x1${'0'.repeat(48)}` }],
    ['a window that ends before it begins', '/valid_before', { ...tempo, valid_after: 5, valid_before: 5 }],
    [
      'a tip above the cap',
      '/max_priority_fee_per_gas',
      { ...tempo, max_fee_per_gas: 1, max_priority_fee_per_gas: 2 },
    ],
    ['a bad fee token', '/fee_token', { ...tempo, fee_token: 'usd' }],
    [
      'a short storage key',
      '/access_list/0/storage_keys/0',
      { ...tempo, access_list: [{ address: to, storage_keys: ['0x01'] }] },
    ],
    [
      'an invalid signature',
      '/aa_authorization_list/0/signature',
      { ...tempo, aa_authorization_list: [{ contract: to, chain_id: 1, nonce: 0, signature: '0x1234' }] },
    ],
    ['another sender', '/from', { ...tempo, from: to }],
  ])(
    'eth_signTransaction: refuses a Tempo transaction with %s at /transaction%s',
    async (_what, field, transaction) => {
      expect((await refusalOf('eth_signTransaction', { transaction })).field).toBe(`/transaction${field}`);
    },
  );
});

describe('eth_signTypedData_v4', () => {
  const types = {
    Mail: [
      { name: 'to', type: 'address' },
      { name: 'amount', type: 'uint8' },
    ],
  };
  const mail = {
    domain: { name: 'Custos', chainId: 1 },
    types,
    primary_type: 'Mail',
    message: { to, amount: 1 },
  };
  const withField = (type: string, value: unknown) => ({
    ...mail,
    types: { Mail: [{ name: 'x', type }] },
    message: { x: value },
  });

  test.each([
    ['a number too large', '/message/x', withField('uint8', 256)],
    ['a negative unsigned number', '/message/x', withField('uint8', -1)],
    ['a signed number too small', '/message/x', withField('int8', -129)],
    ['a number that is a word', '/message/x', withField('uint256', 'many')],
    ['a number that is a fraction', '/message/x', withField('uint256', 0.5)],
    ['a truth that is a text', '/message/x', withField('bool', 'true')],
    ['a text that is a number', '/message/x', withField('string', 5)],
    ['a text that UTF-8 cannot carry', '/message/x', withField('string', '\ud800')],
    ['bytes too short', '/message/x', withField('bytes4', '0x112233')],
    ['bytes too long', '/message/x', withField('bytes4', '0x1122334455')],
    ['half a byte', '/message/x', withField('bytes', '0x123')],
    ['a bad address', '/message/x', withField('address', '0x12')],
    ['null', '/message/x', withField('string', null)],
    ['an unknown type', '/types/Mail', withField('Letter', {})],
    ['a number of 7 bits', '/types/Mail', withField('uint7', 1)],
    ['a number of 264 bits', '/types/Mail', withField('uint264', 1)],
    ['bytes of 33', '/types/Mail', withField('bytes33', `0x${'11'.repeat(33)}`)],
    ['no array', '/message/x', withField('uint8[]', 1)],
    ['an array of another length', '/message/x', withField('uint8[2]', [1])],
    ['a bad element', '/message/x/1', withField('uint8[]', [1, 256])],
    ['an absent field', '/message/amount', { ...mail, message: { to } }],
    [
      'an inherited field',
      '/message/toString',
      { ...mail, types: { Mail: [{ name: 'toString', type: 'string' }] }, message: {} },
    ],
    ['an absent primary type', '/primary_type', { ...mail, primary_type: 'Letter' }],
    ['a primary type of every object', '/primary_type', { ...mail, primary_type: 'constructor' }],
    ['a struct named like a number', '/types', { ...mail, types: { ...types, uint256: [] } }],
    ['a struct name with punctuation', '/types', { ...mail, types: { ...types, 'A(uint8 b)': [] } }],
    [
      'a field name with punctuation',
      '/types/Mail',
      { ...mail, types: { Mail: [{ name: 'a,uint8 b', type: 'uint8' }] } },
    ],
    [
      'a field twice',
      '/types/Mail',
      {
        ...mail,
        types: {
          Mail: [
            { name: 'a', type: 'uint8' },
            { name: 'a', type: 'uint8' },
          ],
        },
      },
    ],
    ['a domain key that is not signed', '/domain', { ...mail, domain: { ...mail.domain, chain: 5 } }],
    [
      'a domain key outside its declared type',
      '/domain',
      { ...mail, types: { ...types, EIP712Domain: [{ name: 'name', type: 'string' }] } },
    ],
    ['a bad domain value', '/domain/chainId', { ...mail, domain: { chainId: 'mainnet' } }],
  ])('eth_signTypedData_v4: refuses %s at /typed_data%s', async (_what, field, typed_data) => {
    expect((await refusalOf('eth_signTypedData_v4', { typed_data })).field).toBe(`/typed_data${field}`);
  });

  test('eth_signTypedData_v4: refuses a message that is nested too deep', async () => {
    let message: object = { next: [] };
    for (let depth = 0; depth < 200; depth += 1) message = { next: [message] };
    const typed_data = { ...mail, types: { Mail: [{ name: 'next', type: 'Mail[]' }] }, message };
    expect((await refusalOf('eth_signTypedData_v4', { typed_data })).message).toBe(
      'expected at most 128 levels',
    );
  });

  test('eth_signTypedData_v4: accepts large numbers as decimal and 0x text', async () => {
    const [decimal, hexadecimal] = await Promise.all(
      ['340282366920938463463374607431768211456', '0x100000000000000000000000000000000'].map((value) =>
        signOffline('eth_signTypedData_v4', secret, { typed_data: withField('uint256', value) }),
      ),
    );
    expect(decimal).toEqual(hexadecimal);
  });
});

describe('the other methods of ethereum', () => {
  const operation = {
    sender: to,
    nonce: '0x0',
    call_data: '0x',
    call_gas_limit: '0x1',
    verification_gas_limit: '0x1',
    pre_verification_gas: '0x1',
    max_fee_per_gas: '0x1',
    max_priority_fee_per_gas: '0x1',
  };
  const contract = '0x0000000071727De22E5E9d8BAf0edAc6f37da032';

  test.each([
    ['personal_sign', '/message', { message: '0xabc', encoding: 'hex' }],
    ['personal_sign', '/message', { message: 'zz', encoding: 'hex' }],
    ['personal_sign', '/message', { message: '\udc00', encoding: 'utf-8' }],
    ['secp256k1_sign', '/hash', { hash: `0x${'11'.repeat(33)}` }],
    ['secp256k1_sign', '/hash', { hash: '0x' }],
    ['secp256k1_sign', '/hash', { hash: '11'.repeat(32) }],
    ['eth_sign7702Authorization', '/contract', { contract: '0x', chain_id: 1, nonce: 0 }],
    ['eth_sign7702Authorization', '/chain_id', { contract: to, chain_id: -1, nonce: 0 }],
    ['eth_sign7702Authorization', '/nonce', { contract: to, chain_id: 1, nonce: -1 }],
    ['eth_signUserOperation', '/contract', { contract: to, chain_id: 1, user_operation: operation }],
    ['eth_signUserOperation', '/chain_id', { contract, chain_id: -1, user_operation: operation }],
    [
      'eth_signUserOperation',
      '/user_operation/call_gas_limit',
      { contract, chain_id: 1, user_operation: { ...operation, call_gas_limit: `0x1${'0'.repeat(32)}` } },
    ],
    [
      'eth_signUserOperation',
      '/user_operation/factory_data',
      { contract, chain_id: 1, user_operation: { ...operation, factory_data: '0x12' } },
    ],
    [
      'eth_signUserOperation',
      '/user_operation/paymaster_data',
      { contract, chain_id: 1, user_operation: { ...operation, paymaster_data: '0x12' } },
    ],
  ] as const)('the other methods of ethereum: %s names %s', async (method, field, params) => {
    expect((await refusalOf(method, params)).field).toBe(field);
  });

  test('an entry point 0.6 operation has no separate paymaster gas', async () => {
    const user_operation = { ...operation, paymaster: to, paymaster_post_op_gas_limit: '0x1' };
    const params = { contract: '0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789', chain_id: 1, user_operation };
    expect((await refusalOf('eth_signUserOperation', params)).field).toBe(
      '/user_operation/paymaster_post_op_gas_limit',
    );
  });

  test('an account contract known to use entry point 0.7 signs as the entry point does', async () => {
    const [account, entryPoint] = await Promise.all(
      ['0x69007702764179f14F51cdce752f4f775d74E139', contract].map((address) =>
        signOffline('eth_signUserOperation', secret, {
          contract: address,
          chain_id: 1,
          user_operation: operation,
        }),
      ),
    );
    expect(account).toEqual(entryPoint);
  });

  test('executor `self` increments a missing nonce', async () => {
    const params = { contract: to, chain_id: 1 };
    const given = await signOffline('eth_sign7702Authorization', secret, { ...params, nonce: 1 });
    expect(await signOffline('eth_sign7702Authorization', secret, { ...params, executor: 'self' })).toEqual(
      given,
    );
    expect(
      await signOffline('eth_sign7702Authorization', secret, { ...params, nonce: 1, executor: 'self' }),
    ).toEqual(given);
  });
});

test('a missing type is inferred from the fields, by default 2', async () => {
  const cases = [
    [{ chain_id: 1, to }, '0x02'],
    [{ chain_id: 1, to, gas_price: 1 }, '0xf8'],
    [{ chain_id: 1, to, authorization_list: [{ ...entry, y_parity: 0 as const }] }, '0x04'],
  ] as const;
  for (const [transaction, prefix] of cases) {
    const { signed_transaction } = await signOffline('eth_signTransaction', secret, { transaction });
    expect(signed_transaction.slice(0, 4)).toBe(prefix);
  }
});
