import { encodeEventTopics, pad, parseAbi, toHex } from 'viem';
import { expect, test } from 'vitest';
import { connectEvm } from '../../../src/adapters/chain-rpc/evm.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { type Scripted, startScriptedNode } from '../../support/scripted-node.ts';

// Sequences of calls and movements of transactions, as nodes report them.
const caip2 = 'eip155:8453';
const [wallet, router, other] = ['a1', 'b2', 'c3'].map((fill) => `0x${fill.repeat(20)}`) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
];
const weth = '0x4200000000000000000000000000000000000006';
const calls = [router, other].map((to) => ({ from: wallet, to, value: 0n, data: Uint8Array.of(1) }));

async function nodeThat(answer: (method: string, params: readonly unknown[]) => Scripted | undefined) {
  const node = await startScriptedNode(
    (method, params) =>
      answer(method, params) ?? (method === 'eth_chainId' ? { result: '0x2105' } : { result: null }),
  );
  return {
    node,
    chain: connectEvm({ ...{ caip2, urls: [node.url], log: silentLog }, confirmations: 1n, namedTokens: [] }),
  };
}

test('calls are simulated in order, with gas for refunds that are paid only afterwards', async () => {
  let asked: unknown;
  const { node, chain } = await nodeThat((method, params) => {
    if (method !== 'eth_simulateV1') return undefined;
    [asked] = params;
    const results = [
      { status: '0x1', gasUsed: '0x7530' },
      { status: '0x1', gasUsed: '0xea60' },
    ];
    return { result: [{ calls: results }] };
  });
  await using _ = node;
  expect(await chain.simulate(calls)).toEqual({ succeeds: true, units: [40_000n, 80_000n] });
  expect(asked).toMatchObject({
    blockStateCalls: [{ calls: [{ from: wallet, to: router, input: '0x01' }, { to: other }] }],
  });
});

test('the first call that fails is named, with its reason', async () => {
  // Error("no")
  const data = `0x08c379a0${pad('0x20').slice(2)}${pad('0x02').slice(2)}${toHex('no').slice(2).padEnd(64, '0')}`;
  const { node, chain } = await nodeThat((method) =>
    method === 'eth_simulateV1'
      ? {
          result: [
            {
              calls: [
                { status: '0x1', gasUsed: '0x1' },
                { status: '0x0', gasUsed: '0x1', error: { code: 3, message: 'execution reverted', data } },
              ],
            },
          ],
        }
      : undefined,
  );
  await using _ = node;
  expect(await chain.simulate(calls)).toEqual({
    ...{ succeeds: false, index: 1, reason: 'reverts', message: 'execution reverted: no' },
  });
});

test('a node that lacks eth_simulateV1 estimates the first call alone', async () => {
  const { node, chain } = await nodeThat((method) => {
    if (method === 'eth_simulateV1') return { error: { code: -32601, message: 'method not found' } };
    return method === 'eth_estimateGas' ? { result: '0xb3b0' } : undefined;
  });
  await using _ = node;
  expect(await chain.simulate(calls)).toEqual({ succeeds: true, units: [46_000n, undefined] });
});

test('a sender who cannot pay is refused', async () => {
  const { node, chain } = await nodeThat((method) =>
    method === 'eth_simulateV1'
      ? { error: { code: -38014, message: 'insufficient funds for gas * price + value' } }
      : undefined,
  );
  await using _ = node;
  expect(await chain.simulate(calls)).toMatchObject({
    ...{ succeeds: false, index: 0, reason: 'insufficient_funds' },
  });
});

const events = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Deposit(address indexed dst, uint256 wad)',
  'event Withdrawal(address indexed src, uint256 wad)',
]);
const zero = `0x${'0'.repeat(40)}` as const;
const transfer = (from: `0x${string}`, to: `0x${string}`, amount: bigint, address: string = other) => ({
  ...{ address, topics: encodeEventTopics({ abi: events, eventName: 'Transfer', args: { from, to } }) },
  data: toHex(amount, { size: 32 }),
});
const wrapping = (eventName: 'Deposit' | 'Withdrawal', who: `0x${string}`, amount: bigint) => ({
  address: weth,
  topics: encodeEventTopics({
    ...{ abi: events, eventName, args: eventName === 'Deposit' ? { dst: who } : { src: who } },
  } as never),
  data: toHex(amount, { size: 32 }),
});

async function movementsIn(receipt: object, transaction: object = {}) {
  const { node, chain } = await nodeThat((method) => {
    if (method === 'eth_getTransactionReceipt')
      return { result: { blockNumber: '0x10', status: '0x1', ...receipt } };
    if (method !== 'eth_getTransactionByHash') return undefined;
    return { result: { from: wallet, to: router, value: '0x0', ...transaction } };
  });
  await using _ = node;
  return await chain.movementsOf(`0x${'7'.repeat(64)}`);
}

test('tokens, the value and the wrapping of a transaction are its movements', async () => {
  const nft = { ...transfer(wallet, router, 0n), data: '0x' };
  nft.topics = [...nft.topics, pad('0x07')] as never;
  const logs = [
    transfer(wallet, router, 5n),
    nft,
    wrapping('Deposit', router, 7n),
    wrapping('Withdrawal', other, 3n),
  ];
  expect(await movementsIn({ logs }, { value: '0x9' })).toEqual({
    blockNumber: 16n,
    movements: [
      { token: null, from: wallet, to: router, rawAmount: 9n },
      { token: other, from: wallet, to: router, rawAmount: 5n },
      { token: weth, from: zero, to: router, rawAmount: 7n },
      { token: weth, from: other, to: zero, rawAmount: 3n },
    ],
  });
});

test('a wrapped asset that logs a transfer beside the deposit counts each movement once', async () => {
  const minted = transfer(zero, router, 7n, weth);
  const logs = [minted, wrapping('Deposit', router, 7n), wrapping('Deposit', router, 7n)];
  const moved = { token: weth, from: zero, to: router, rawAmount: 7n };
  expect(await movementsIn({ logs })).toMatchObject({ movements: [moved, moved] });
});

test('a reverted transaction moved nothing, one without a block is unknown', async () => {
  expect(await movementsIn({ status: '0x0', logs: [] }, { value: '0x9' })).toEqual({
    ...{ blockNumber: 16n, movements: [] },
  });
  const { node, chain } = await nodeThat(() => undefined);
  await using _ = node;
  expect(await chain.movementsOf(`0x${'7'.repeat(64)}`)).toBeUndefined();
});
