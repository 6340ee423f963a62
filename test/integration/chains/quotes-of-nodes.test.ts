import { decodeFunctionData, encodeFunctionResult, type Hex, parseAbi } from 'viem';
import { describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import { callChain } from '../../../src/domain/money/sending/call-chain.ts';
import type { SwapOrder } from '../../../src/ports/chains.ts';
import { type ScriptedNode, startScriptedNode } from '../../support/scripted-node.ts';

// What one node says about a swap must not decide what a wallet gives or gets.

const abi = parseAbi([
  'function WETH() view returns (address)',
  'function factory() view returns (address)',
  'function getPair(address, address) view returns (address)',
  'function getAmountsOut(uint256, address[]) view returns (uint256[])',
  'function getAmountsIn(uint256, address[]) view returns (uint256[])',
]);
const swaps = parseAbi([
  'function swapExactETHForTokens(uint256, address[], address, uint256) payable returns (uint256[])',
]);
const address = (digit: string) => `0x${digit.repeat(40)}` as const;
const caip2 = 'eip155:1';
const now = 1_800_000_000;

interface Said {
  /** The other side of a quote. */
  readonly quoted?: bigint;
  readonly pair?: Hex;
  readonly seconds?: number;
}

function startNode({ quoted = 1_000_000n, pair = address('c'), seconds = now }: Said): Promise<ScriptedNode> {
  return startScriptedNode((method, params) => {
    if (method === 'eth_chainId') return { result: '0x1' };
    if (method === 'eth_getBlockByNumber') return { result: { timestamp: `0x${seconds.toString(16)}` } };
    const { data } = params[0] as { data: Hex };
    const { functionName, args } = decodeFunctionData({ abi, data });
    const results: Record<string, unknown> = {
      WETH: address('b'),
      factory: address('f'),
      getPair: pair,
      getAmountsOut: [args?.[0], quoted],
      getAmountsIn: [quoted, args?.[0]],
    };
    return { result: encodeFunctionResult({ abi, functionName, result: results[functionName] } as never) };
  });
}

const order: SwapOrder = {
  caip2,
  tokenIn: null,
  tokenOut: address('d'),
  amountType: 'exact_input',
  rawAmount: 5_000_000n,
  slippageBps: 0,
  sender: address('a'),
  recipient: address('a'),
};

async function routeBy(said: readonly Said[], change: Partial<SwapOrder> = {}) {
  const nodes = await Promise.all(said.map(startNode));
  try {
    const chains = connectChains(
      [{ caip2, urls: nodes.map(({ url }) => url), compareAgainMs: 1 }],
      silentLog,
    );
    const routers = routersOnChain({
      chains,
      clock: { now: () => now * 1000 },
      routerOf: () => address('e'),
    });
    const found = await callChain(routers.route({ ...order, ...change }));
    if ('fault' in found) throw new Error(found.message);
    return found;
  } finally {
    for (const node of nodes) await node[Symbol.asyncDispose]();
  }
}

const disagreement = (what: string) => ({
  code: 'transaction_broadcast_failure',
  message: `the nodes of \`eip155:1\` disagree about ${what}; nothing was signed or sent`,
});
const router = `the contract \`${address('e')}\``;

describe('several nodes', () => {
  test.each([
    ['a lower output', { quoted: 900_000n }, {}],
    ['a higher input', { quoted: 1_100_000n }, { amountType: 'exact_output' }],
  ] as const)('several nodes of which one quotes %s refuse the swap', async (_, lie, change) => {
    for (const said of [
      [{}, lie],
      [lie, {}],
    ])
      await expect(routeBy(said, change)).rejects.toMatchObject(disagreement(router));
  });

  test('of which one hides a pool, or moves the deadline, refuse the swap', async () => {
    await expect(routeBy([{ pair: `0x${'0'.repeat(40)}` }, {}])).rejects.toMatchObject(
      disagreement(`the contract \`${address('f')}\``),
    );
    await expect(routeBy([{}, { seconds: now + 1_000_000 }])).rejects.toMatchObject(
      disagreement('the time of the latest block'),
    );
  });

  test('that are a few blocks apart quote what is best for the wallet, by the earliest time', async () => {
    const sold = await routeBy([{ quoted: 995_000n, seconds: now + 36 }, { quoted: 1_000_000n }]);
    expect(sold.rawOutputMin).toBe(1_000_000n);
    const { data } = sold.calls[0]!;
    const call = decodeFunctionData({ abi: swaps, data: `0x${Buffer.from(data).toString('hex')}` });
    expect(call.args[3]).toBe(BigInt(now + 1200));
    const bought = await routeBy([{ quoted: 995_000n }, { quoted: 1_000_000n }], {
      amountType: 'exact_output',
    });
    expect(bought.rawInputMax).toBe(995_000n);
  });
});
