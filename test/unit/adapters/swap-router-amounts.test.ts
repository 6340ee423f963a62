import { decodeFunctionData, encodeFunctionResult, parseAbi, toHex } from 'viem';
import { expect, test } from 'vitest';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import type { Chains, SwapOrder } from '../../../src/ports/chains.ts';

const abi = parseAbi([
  'function WETH() view returns (address)',
  'function factory() view returns (address)',
  'function getPair(address, address) view returns (address)',
  'function getAmountsOut(uint256, address[]) view returns (uint256[])',
  'function getAmountsIn(uint256, address[]) view returns (uint256[])',
  'function swapExactETHForTokens(uint256, address[], address, uint256) payable returns (uint256[])',
  'function swapETHForExactTokens(uint256, address[], address, uint256) payable returns (uint256[])',
]);
const address = (digit: string) => `0x${digit.repeat(40)}` as const;
const ether = 10n ** 18n;

/** A node that answers every quote with these amounts, whatever amount it was asked for. */
function lyingChains(amounts: readonly bigint[]): Chains {
  const read = async ({ data }: { data: Uint8Array }): Promise<Uint8Array> => {
    const { functionName } = decodeFunctionData({ abi, data: toHex(data) });
    const isQuote = functionName === 'getAmountsOut' || functionName === 'getAmountsIn';
    const result = isQuote ? amounts : address('c');
    return Buffer.from(encodeFunctionResult({ abi, functionName, result } as never).slice(2), 'hex');
  };
  const chain = { kind: 'evm', caip2: 'eip155:1', read, latestSeconds: async () => 1_800_000_000 };
  return { find: () => chain } as unknown as Chains;
}

const order: SwapOrder = {
  caip2: 'eip155:1',
  tokenIn: null,
  tokenOut: address('d'),
  amountType: 'exact_input',
  rawAmount: ether,
  slippageBps: 50,
  sender: address('a'),
  recipient: address('a'),
};

async function route(amounts: readonly bigint[], change: Partial<SwapOrder>) {
  const routers = routersOnChain({
    chains: lyingChains(amounts),
    clock: { now: () => 1_800_000_000_000 },
    routerOf: () => address('e'),
  });
  const found = await routers.route({ ...order, ...change });
  if ('fault' in found) throw new Error(found.message);
  const { value, data } = found.calls[0]!;
  return { found, value, call: decodeFunctionData({ abi, data: toHex(data) }) };
}

test('a node that inflates the input of a quote does not make the wallet spend more than the order', async () => {
  const { found, value } = await route([50n * ether, 7n], { amountType: 'exact_input' });
  expect({ rawInputMax: found.rawInputMax, value }).toEqual({ rawInputMax: ether, value: ether });
});

test('a node that lowers the output of a quote does not make the wallet accept less than the order', async () => {
  const { found, call } = await route([ether, 7n], { amountType: 'exact_output', rawAmount: 1_000n });
  expect(found.rawOutputMin).toBe(1_000n);
  expect([call.functionName, call.args?.[0]]).toEqual(['swapETHForExactTokens', 1_000n]);
});
