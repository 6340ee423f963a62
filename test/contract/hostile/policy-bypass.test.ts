import {
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseAbi,
  parseAbiParameters,
  serializeTransaction,
} from 'viem';
import { beforeAll, describe, expect, test } from 'vitest';
import { attempt, call } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const BLOCKED = '0x000000000000000000000000000000000000dEaD';
const OTHER = '0x00000000000000000000000000000000000000AA';
const denial = { status: 400, code: 'policy_violation' };

const erc20 = [
  {
    type: 'function',
    name: 'transfer',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
  },
];

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  return () => sandbox[Symbol.asyncDispose]();
});

async function makeWallet(rules: readonly object[]): Promise<string> {
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: { version: '1.0', name: 'the rules', chain_type: 'ethereum', rules: rules as never },
  });
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', policy_ids: [policy.id] },
  });
  return wallet.id;
}

async function outcome(id: 'walletRpc' | 'rawSignWallet', walletId: string, body: object) {
  const answer = await attempt(sandbox, id, { path: { wallet_id: walletId }, body });
  const code = (answer.body as { code?: string }).code;
  return code === undefined ? { status: answer.status } : { status: answer.status, code };
}

describe('a wallet that may do everything but pay one address', () => {
  const rules = [
    {
      name: 'everything',
      method: '*',
      action: 'ALLOW',
      conditions: [{ field_source: 'system', field: 'current_unix_timestamp', operator: 'gt', value: '0' }],
    },
    {
      name: 'but that',
      method: '*',
      action: 'DENY',
      conditions: [{ field_source: 'ethereum_transaction', field: 'to', operator: 'eq', value: BLOCKED }],
    },
  ];
  const payment = { chainId: 1, to: BLOCKED, value: 1n, nonce: 0, gas: 21_000n } as const;
  const legacy = serializeTransaction({ ...payment, type: 'legacy', gasPrice: 1n });
  const eip1559 = serializeTransaction({
    ...payment,
    type: 'eip1559',
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n,
  });
  const rawBytes = (bytes: string) => ({
    params: { bytes, encoding: 'hex', hash_function: 'keccak256' },
  });

  test.each([
    ['legacy', legacy],
    ['EIP-1559', eip1559],
  ])(
    'a wallet that may do everything but pay one address does not sign the %s payment as raw bytes',
    async (_type, serialized) => {
      const walletId = await makeWallet(rules);
      expect(await outcome('rawSignWallet', walletId, rawBytes(serialized))).toEqual(denial);
    },
  );

  test('a wallet that may do everything but pay one address does not sign typed data as raw bytes', async () => {
    const walletId = await makeWallet(rules);
    expect(await outcome('rawSignWallet', walletId, rawBytes(`0x1901${'00'.repeat(64)}`))).toEqual(denial);
  });

  test.each([
    ['secp256k1_sign', 'walletRpc', { method: 'secp256k1_sign', params: { hash: keccak256(eip1559) } }],
    ['raw_sign', 'rawSignWallet', { params: { hash: keccak256(eip1559) } }],
  ] as const)(
    'a wallet that may do everything but pay one address does not sign the payment’s hash by %s',
    async (_name, operation, body) => {
      const walletId = await makeWallet(rules);
      expect(await outcome(operation, walletId, body)).toEqual(denial);
    },
  );

  test('a wallet that may do everything but pay one address signs messages, and pays others', async () => {
    const walletId = await makeWallet(rules);
    const text = { params: { bytes: 'vé, a vote', encoding: 'utf-8', hash_function: 'keccak256' } };
    const other = { method: 'eth_signTransaction', params: { transaction: { to: OTHER, chain_id: 1 } } };
    expect(await outcome('rawSignWallet', walletId, text)).toEqual({ status: 200 });
    expect(await outcome('walletRpc', walletId, other)).toEqual({ status: 200 });
  });
});

describe('a cap cannot be bypassed by requests that cannot be counted', () => {
  async function makeCappedWallet(method: string, metric: object): Promise<string> {
    const { body: aggregation } = await call(sandbox, 'createAggregation', {
      body: {
        name: 'spent',
        method,
        metric: { ...metric, function: 'sum' },
        window: { type: 'rolling', seconds: 3600 },
      } as never,
    });
    const field = `aggregation.${aggregation.id}`;
    const condition = { field_source: 'reference', field, operator: 'lte', value: '100' };
    return makeWallet([{ name: 'up to the cap', method, action: 'ALLOW', conditions: [condition] }]);
  }

  test('by calldata with a trailing byte, which token contracts accept', async () => {
    const walletId = await makeCappedWallet('eth_signTransaction', {
      field_source: 'ethereum_calldata',
      field: 'transfer.amount',
      abi: erc20,
    });
    const transfer = (amount: bigint) =>
      encodeFunctionData({
        abi: parseAbi(['function transfer(address to, uint256 amount)']),
        args: [OTHER, amount],
      });
    const sign = (data: string) =>
      outcome('walletRpc', walletId, {
        method: 'eth_signTransaction',
        params: { transaction: { to: OTHER, chain_id: 1, data } },
      });
    expect(await sign(`${transfer(1_000n)}00`)).toEqual(denial);
    expect(await sign(transfer(1_000n))).toEqual(denial);
    expect(await sign(transfer(100n))).toEqual({ status: 200 });
    expect(await sign(transfer(1n))).toEqual(denial);
  });

  test('by a user operation whose call data has an unknown encoding', async () => {
    const walletId = await makeCappedWallet('eth_signUserOperation', {
      field_source: 'ethereum_transaction',
      field: 'value',
    });
    const operation = {
      sender: OTHER,
      nonce: '0x0',
      call_data: '0x12345678',
      call_gas_limit: '0x1',
      verification_gas_limit: '0x1',
      pre_verification_gas: '0x1',
      max_fee_per_gas: '0x1',
      max_priority_fee_per_gas: '0x1',
    };
    expect(
      await outcome('walletRpc', walletId, {
        method: 'eth_signUserOperation',
        params: {
          contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032',
          chain_id: 1,
          user_operation: operation,
        },
      }),
    ).toEqual(denial);
  });
});

describe('a wallet that may spend up to 5 wei a call', () => {
  const cap = { field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '5' };
  const rules = ['eth_signTransaction', 'eth_signUserOperation'].map((method) => ({
    name: 'up to 5',
    method,
    action: 'ALLOW',
    conditions: [cap],
  }));
  const one = parseAbi(['function execute(address target, uint256 value, bytes data)']);
  const several = parseAbi([
    'struct Call { address target; uint256 value; bytes data; }',
    'function executeBatch(Call[] calls)',
  ]);
  const lists = parseAbi(['function executeBatch(address[] dest, uint256[] value, bytes[] func)']);
  const erc7821 = parseAbi(['function execute(bytes32 mode, bytes executionData)']);
  const items = parseAbiParameters('(address to, uint256 value, bytes data)[]');
  const pay = (value: bigint, data: Hex = '0x') => ({ target: OTHER, value, data }) as const;
  /** The ways in which the code of an account can make calls for it. */
  const ways: Record<string, (value: bigint) => Hex> = {
    'execute of an account': (value) => encodeFunctionData({ abi: one, args: [OTHER, value, '0x'] }),
    'executeBatch of a 7702 account': (value) =>
      encodeFunctionData({ abi: several, args: [[pay(1n), pay(value)]] }),
    'executeBatch of a smart account': (value) =>
      encodeFunctionData({
        abi: lists,
        args: [
          [OTHER, OTHER],
          [1n, value],
          ['0x', '0x'],
        ],
      }),
    'execute of ERC-7821': (value) =>
      encodeFunctionData({
        abi: erc7821,
        args: [`0x01${'00'.repeat(31)}`, encodeAbiParameters(items, [[{ to: OTHER, value, data: '0x' }]])],
      }),
  };

  async function addressOf(walletId: string): Promise<Hex> {
    return (await call(sandbox, 'getWallet', { path: { wallet_id: walletId } })).body.address as Hex;
  }
  const signing = (to: string, data: Hex) => ({
    method: 'eth_signTransaction',
    params: { transaction: { to, data, chain_id: 1 } },
  });
  const operating = (sender: string, call_data: Hex) => ({
    method: 'eth_signUserOperation',
    params: {
      contract: '0x0000000071727De22E5E9d8BAf0edAc6f37da032',
      chain_id: 1,
      user_operation: {
        sender,
        nonce: '0x0',
        call_data,
        call_gas_limit: '0x1',
        verification_gas_limit: '0x1',
        pre_verification_gas: '0x1',
        max_fee_per_gas: '0x1',
        max_priority_fee_per_gas: '0x1',
      },
    },
  });

  test.each(Object.entries(ways))(
    'a wallet that may spend up to 5 wei a call does not spend more by a call to itself: %s',
    async (_way, encode) => {
      const walletId = await makeWallet(rules);
      const own = await addressOf(walletId);
      expect(await outcome('walletRpc', walletId, signing(own, encode(5n)))).toEqual({ status: 200 });
      expect(await outcome('walletRpc', walletId, signing(own, encode(6n)))).toEqual(denial);
      // The same nested, with a trailing byte, and to another account, which may do anything with it.
      const nested = (value: bigint) => encodeFunctionData({ abi: one, args: [own, 0n, encode(value)] });
      expect(await outcome('walletRpc', walletId, signing(own, nested(5n)))).toEqual({ status: 200 });
      expect(await outcome('walletRpc', walletId, signing(own, nested(6n)))).toEqual(denial);
      expect(await outcome('walletRpc', walletId, signing(own, `${encode(5n)}00`))).toEqual(denial);
      expect(await outcome('walletRpc', walletId, signing(OTHER, encode(6n)))).toEqual({ status: 200 });
    },
  );

  test.each(Object.entries(ways))(
    'nor by a user operation in which its account calls itself: %s',
    async (_way, encode) => {
      const walletId = await makeWallet(rules);
      const account = '0x00000000000000000000000000000000000000ac';
      const inside = (value: bigint) => encodeFunctionData({ abi: one, args: [account, 0n, encode(value)] });
      expect(await outcome('walletRpc', walletId, operating(account, inside(5n)))).toEqual({ status: 200 });
      expect(await outcome('walletRpc', walletId, operating(account, inside(6n)))).toEqual(denial);
    },
  );

  test('nor by any other call to itself; a plain payment to itself is allowed', async () => {
    const walletId = await makeWallet(rules);
    const own = await addressOf(walletId);
    const upgrade = encodeFunctionData({
      abi: parseAbi(['function upgradeTo(address code)']),
      args: [OTHER],
    });
    expect(await outcome('walletRpc', walletId, signing(own, upgrade))).toEqual(denial);
    expect(await outcome('walletRpc', walletId, signing(own, '0x'))).toEqual({ status: 200 });
    const operation = operating(own, encodeFunctionData({ abi: one, args: [own, 0n, upgrade] }));
    expect(await outcome('walletRpc', walletId, operation)).toEqual(denial);
  });

  test('a wallet that may spend up to 5 wei a call calls to itself are counted once in running totals', async () => {
    const { body: aggregation } = await call(sandbox, 'createAggregation', {
      body: {
        name: 'spent by operations',
        method: 'eth_signUserOperation',
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        window: { type: 'rolling', seconds: 3600 },
      },
    });
    const field = `aggregation.${aggregation.id}`;
    const capped = { field_source: 'reference', field, operator: 'lte', value: '100' };
    const walletId = await makeWallet([
      { name: 'up to 100', method: 'eth_signUserOperation', action: 'ALLOW', conditions: [capped] },
    ]);
    const own = await addressOf(walletId);
    const spend = (value: bigint) => {
      const inner = encodeFunctionData({ abi: one, args: [OTHER, value, '0x'] });
      return operating(own, encodeFunctionData({ abi: one, args: [own, 0n, inner] }));
    };
    expect(await outcome('walletRpc', walletId, spend(60n))).toEqual({ status: 200 });
    expect(await outcome('walletRpc', walletId, spend(41n))).toEqual(denial);
    expect(await outcome('walletRpc', walletId, spend(40n))).toEqual({ status: 200 });
  });
});
