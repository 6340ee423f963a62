import { encodeFunctionData, erc20Abi, type Hex, parseAbi } from 'viem';

// The calldata of the transactions that a server builds, encoded by another library.

const routerAbi = parseAbi([
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline)',
  'function swapTokensForExactTokens(uint256 amountOut, uint256 amountInMax, address[] path, address to, uint256 deadline)',
  'function swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable',
  'function swapTokensForExactETH(uint256 amountOut, uint256 amountInMax, address[] path, address to, uint256 deadline)',
  'function swapExactTokensForETH(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline)',
  'function swapETHForExactTokens(uint256 amountOut, address[] path, address to, uint256 deadline) payable',
  'function swapExactTokensForTokensSupportingFeeOnTransferTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline)',
]);
const wrappedAbi = parseAbi(['function deposit() payable', 'function withdraw(uint256 wad)']);
const vaultAbi = parseAbi([
  'function deposit(uint256 assets, address receiver)',
  'function mint(uint256 shares, address receiver)',
  'function withdraw(uint256 assets, address receiver, address owner)',
  'function redeem(uint256 shares, address receiver, address owner)',
  'function withdrawFees(address to, uint256 amount)',
]);
const distributorAbi = parseAbi([
  'function claim(address[] users, address[] tokens, uint256[] amounts, bytes32[][] proofs)',
]);
const executorAbi = parseAbi(['function execute(bytes32 mode, bytes executionData)']);

type Args = readonly unknown[];
const encoded = (abi: unknown, functionName: string, args: Args): Hex =>
  encodeFunctionData({ abi, functionName, args } as never);

export const routerCall = (name: string, ...args: Args): Hex => encoded(routerAbi, name, args);
export const wrappedCall = (name: string, ...args: Args): Hex => encoded(wrappedAbi, name, args);
export const vaultCall = (name: string, ...args: Args): Hex => encoded(vaultAbi, name, args);
export const tokenCall = (name: string, ...args: Args): Hex => encoded(erc20Abi, name, args);
export const claimCall = (...args: Args): Hex => encoded(distributorAbi, 'claim', args);

interface BatchedCall {
  readonly to: string;
  readonly value?: bigint;
  readonly data?: string;
}

/** The calldata of a batch (ERC-7821), written by hand. */
export function batchCall(calls: readonly BatchedCall[]): Hex {
  const word = (value: bigint | number) => value.toString(16).padStart(64, '0');
  const items = calls.map(({ to, value = 0n, data = '0x' }) => {
    const hex = data.slice(2);
    const padded = hex.padEnd(Math.ceil(hex.length / 64) * 64, '0');
    return [BigInt(to), value, 96n, BigInt(hex.length / 2)].map(word).join('') + padded;
  });
  let at = items.length * 32;
  const offsets = items.map((item) => {
    const offset = word(at);
    at += item.length / 2;
    return offset;
  });
  const data = `0x${word(32)}${word(items.length)}${offsets.join('')}${items.join('')}`;
  return encoded(executorAbi, 'execute', [`0x01${'00'.repeat(31)}`, data]);
}

/** A swap of one wei on Ethereum, and its call of the router. */
export function smallSwap(router: string, wallet: string) {
  const token = `0x${'e1'.repeat(20)}`;
  const path = [`0x${'a2'.repeat(20)}`, token];
  return {
    body: {
      source: { caip2: 'eip155:1', asset_address: 'native' },
      destination: { asset_address: token },
      base_amount: '1',
    },
    call: {
      ...{ to: router, value: '0x1' },
      data: routerCall('swapExactETHForTokens', 1n, path, wallet, 2_000_000_000n),
    },
  };
}
