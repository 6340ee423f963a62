import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Abi, encodeDeployData, encodeFunctionData, type Hex } from 'viem';

// Contracts of the kinds that are called most on Ethereum, as their authors' code compiles, with their calls.

interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

const recorded = (file: string): Record<string, Contract> =>
  JSON.parse(readFileSync(new URL(`../../vectors/contracts/golden/${file}`, import.meta.url), 'utf8'));

const load = createRequire(import.meta.url);

function published(file: string): Contract {
  const { abi, bytecode } = load(file) as { abi: Abi; bytecode: string };
  return { abi, bytecode: bytecode.startsWith('0x') ? (bytecode as Hex) : `0x${bytecode}` };
}

/** `vectors/contracts/known.sol` and `vault.sol` on OpenZeppelin's contracts, and Uniswap's contracts as published. */
const contracts: Readonly<Record<string, Contract>> = {
  ...recorded('known.json'),
  Vault: recorded('vault.json').Vault!,
  Factory: published('@uniswap/v2-core/build/UniswapV2Factory.json'),
  Pair: published('@uniswap/v2-core/build/UniswapV2Pair.json'),
  Router: published('@uniswap/v2-periphery/build/UniswapV2Router02.json'),
  WETH9: published('@uniswap/v2-periphery/build/WETH9.json'),
};

export const creating = (name: string, ...args: unknown[]): Hex =>
  encodeDeployData({ ...contracts[name]!, args } as never);

export const calling = (name: string, functionName: string, ...args: unknown[]): Hex =>
  encodeFunctionData({ abi: contracts[name]!.abi, functionName, args } as never);
