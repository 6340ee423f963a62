import { keccak_256 } from '@noble/hashes/sha3.js';
import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import type * as Hex from 'ox/Hex';
import { bytesTo0xHex, bytesToHex, hexToBytes } from '../../crypto/encoding.ts';
import { once } from '../../load-once.ts';

/**
 * A value in the arguments or the result of a function. Decoded addresses are lower-case 0x hex, and numbers above 48
 * bits are bigints.
 */
export type AbiValue = string | number | bigint | boolean | readonly AbiValue[];

/** Encodes and decodes calls to a smart contract, and their results. `Name` is the union of its functions' names. */
export interface ContractAbi<Name extends string> {
  encodeCall(name: Name, ...args: AbiValue[]): Uint8Array;
  /** Returns undefined for other functions and for malformed arguments. */
  decodeCall(data: Uint8Array): { readonly name: Name; readonly args: readonly AbiValue[] } | undefined;
  encodeResult(name: Name, ...values: AbiValue[]): Uint8Array;
  /** Returns undefined if `data` is not a result of the function, for example if it is empty. */
  decodeResult(name: Name, data: Uint8Array): readonly AbiValue[] | undefined;
}

type NameOf<Signature extends string> = Signature extends `function ${infer Name}(${string}` ? Name : never;

/**
 * Returns an encoder and decoder for functions with these signatures, such as
 * `function name(address who) returns (uint256)`. Names must be unique.
 */
export function contractAbi<const Signature extends string>(
  signatures: readonly Signature[],
): ContractAbi<NameOf<Signature>> {
  type Name = NameOf<Signature>;
  // The signatures are parsed on first use, because ABIs are created when the program starts, and few requests need
  // them.
  const functions = once(() => {
    const items = signatures.map(
      (signature) => AbiFunction.from(signature as string) as AbiFunction.AbiFunction,
    );
    return new Map(items.map((item) => [item.name, item]));
  });
  const bySelector = once(
    () => new Map([...functions().values()].map((item) => [AbiFunction.getSelector(item) as string, item])),
  );
  const named = (name: string): AbiFunction.AbiFunction => {
    const item = functions().get(name);
    if (item === undefined) throw new Error(`expected a function of the contract, got \`${name}\``);
    return item;
  };
  return {
    encodeCall: (name, ...args) => hexToBytes(AbiFunction.encodeData(named(name), args as never).slice(2)),
    decodeCall(data) {
      if (data.length < 4) return undefined;
      const item = bySelector().get(bytesTo0xHex(data.subarray(0, 4)));
      if (item === undefined) return undefined;
      const args = orUndefined(() => AbiFunction.decodeData(item, bytesTo0xHex(data) as Hex.Hex));
      if (args === undefined && item.inputs.length > 0) return undefined;
      return { name: item.name as Name, args: lowerCase(args ?? []) };
    },
    encodeResult(name, ...values) {
      const result = values.length === 1 ? values[0] : values;
      return hexToBytes(AbiFunction.encodeResult(named(name), result as never).slice(2));
    },
    decodeResult(name, data) {
      if (data.length === 0) return undefined;
      // `AbiFunction.decodeResult` unwraps a single value.
      return orUndefined(() =>
        lowerCase(AbiParameters.decode(named(name).outputs, bytesTo0xHex(data) as Hex.Hex)),
      );
    },
  };
}

// ox returns addresses with their checksum.
function lowerCase(values: unknown): readonly AbiValue[] {
  return (values as AbiValue[]).map((value) => {
    if (typeof value === 'string') return /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : value;
    return Array.isArray(value) ? lowerCase(value) : value;
  });
}

function orUndefined<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}

/*
 * The Merkle trees of reward distributors, with hashes as lower-case 0x hex. A node is the hash of its two children
 * in ascending order, so a proof needs no positions. Source: AngleProtocol/merkl-contracts, Distributor.
 */

/** The total amount of a token, in base units, that was awarded to an account. Addresses are lower-case 0x hex. */
export interface CumulativeReward {
  readonly user: string;
  readonly token: string;
  readonly amount: bigint;
}

// Returns keccak256(abi.encode(user, token, amount)).
export function rewardLeaf({ user, token, amount }: CumulativeReward): string {
  const words = [user.slice(2), token.slice(2), amount.toString(16)].map((word) => word.padStart(64, '0'));
  return bytesTo0xHex(keccak_256(hexToBytes(words.join(''))));
}

// Returns keccak256(lower child || higher child).
export function parentHash(one: string, other: string): string {
  const [low, high] = one < other ? [one, other] : [other, one];
  return bytesTo0xHex(keccak_256(hexToBytes(low.slice(2) + high.slice(2))));
}

/** Computes the root from a leaf and the siblings in `proof`. */
export function rootOfProof(leaf: string, proof: readonly string[]): string {
  return proof.reduce(parentHash, leaf);
}

/**
 * The functions that swaps call on a router with the interface of Uniswap V2. Source: v2-periphery, IUniswapV2Router02.
 */
export const swapRouter = contractAbi([
  'function factory() view returns (address)',
  'function WETH() view returns (address)',
  'function getAmountsOut(uint256 amountIn, address[] path) view returns (uint256[] amounts)',
  'function getAmountsIn(uint256 amountOut, address[] path) view returns (uint256[] amounts)',
  'function getAmountOut(uint256 amountIn, uint256 reserveIn, uint256 reserveOut) pure returns (uint256 amountOut)',
  'function getAmountIn(uint256 amountOut, uint256 reserveIn, uint256 reserveOut) pure returns (uint256 amountIn)',
  'function quote(uint256 amountA, uint256 reserveA, uint256 reserveB) pure returns (uint256 amountB)',
  'function swapExactTokensForTokens(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[] amounts)',
  'function swapTokensForExactTokens(uint256 amountOut, uint256 amountInMax, address[] path, address to, uint256 deadline) returns (uint256[] amounts)',
  'function swapExactETHForTokens(uint256 amountOutMin, address[] path, address to, uint256 deadline) payable returns (uint256[] amounts)',
  'function swapTokensForExactETH(uint256 amountOut, uint256 amountInMax, address[] path, address to, uint256 deadline) returns (uint256[] amounts)',
  'function swapExactTokensForETH(uint256 amountIn, uint256 amountOutMin, address[] path, address to, uint256 deadline) returns (uint256[] amounts)',
  'function swapETHForExactTokens(uint256 amountOut, address[] path, address to, uint256 deadline) payable returns (uint256[] amounts)',
]);

/** The smart contract that creates a router's pairs. Source: v2-core, IUniswapV2Factory. */
export const pairFactory = contractAbi([
  'function getPair(address tokenA, address tokenB) view returns (address pair)',
  'function allPairsLength() view returns (uint256)',
]);

/** The ERC-20 token that wraps the native asset. Source: WETH9. */
export const wrappedNative = contractAbi(['function deposit() payable', 'function withdraw(uint256 wad)']);

/** An ERC-4626 vault without its ERC-20 functions. Source: ERC-4626. */
export const tokenVault = contractAbi([
  'function asset() view returns (address)',
  'function totalAssets() view returns (uint256)',
  'function convertToShares(uint256 assets) view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
  'function maxDeposit(address receiver) view returns (uint256)',
  'function maxMint(address receiver) view returns (uint256)',
  'function maxWithdraw(address owner) view returns (uint256)',
  'function maxRedeem(address owner) view returns (uint256)',
  'function previewDeposit(uint256 assets) view returns (uint256)',
  'function previewMint(uint256 shares) view returns (uint256)',
  'function previewWithdraw(uint256 assets) view returns (uint256)',
  'function previewRedeem(uint256 shares) view returns (uint256)',
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function mint(uint256 shares, address receiver) returns (uint256)',
  'function withdraw(uint256 assets, address receiver, address owner) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
]);

/** The functions for the fees that a vault on Aave keeps for its owner. Source: aave/Aave-Vault, ATokenVault. */
export const feeVault = contractAbi([
  'function getClaimableFees() view returns (uint256)',
  'function withdrawFees(address to, uint256 amount)',
]);

/**
 * The smart contract that pays cumulative rewards against a Merkle root. Source: AngleProtocol/merkl-contracts,
 * Distributor.
 */
export const rewardDistributor = contractAbi([
  'function getMerkleRoot() view returns (bytes32)',
  'function claimed(address user, address token) view returns (uint208 amount, uint48 timestamp, bytes32 merkleRoot)',
  'function claim(address[] users, address[] tokens, uint256[] amounts, bytes32[][] proofs)',
]);

/** A state-changing call of an ERC-20 token. Addresses are lower-case 0x hex. */
export type TokenCall =
  | { readonly name: 'transfer'; readonly to: string; readonly amount: bigint }
  | { readonly name: 'approve'; readonly spender: string; readonly amount: bigint }
  | { readonly name: 'transferFrom'; readonly from: string; readonly to: string; readonly amount: bigint };

/** A read-only call of an ERC-20 token. */
type TokenQuery =
  | { readonly name: 'balanceOf'; readonly owner: string }
  | { readonly name: 'allowance'; readonly owner: string; readonly spender: string }
  | { readonly name: 'decimals' | 'symbol' | 'name' | 'totalSupply' };

// The first 4 bytes of keccak256 of the function signature.
const SELECTORS = {
  transfer: 'a9059cbb',
  approve: '095ea7b3',
  transferFrom: '23b872dd',
  balanceOf: '70a08231',
  allowance: 'dd62ed3e',
  decimals: '313ce567',
  symbol: '95d89b41',
  name: '06fdde03',
  totalSupply: '18160ddd',
} as const;

/** Encodes the calldata of an ERC-20 call. Source: ERC-20, ABI encoding of static words. */
export function encodeTokenCall(call: TokenCall | TokenQuery): Uint8Array {
  return hexToBytes(SELECTORS[call.name] + wordsOf(call).join(''));
}

/** Decodes an ERC-20 call that changes state. Returns undefined for other calldata and for trailing bytes. */
export function decodeTokenCall(data: Uint8Array): TokenCall | undefined {
  const words = readWords(data);
  if (words === undefined) return undefined;
  const [selector, first = '', second = '', third = ''] = words;
  const size = words.length - 1;
  if (selector === SELECTORS.transfer && size === 2 && isAddress(first)) {
    return { name: 'transfer', to: address(first), amount: BigInt(`0x${second}`) };
  }
  if (selector === SELECTORS.approve && size === 2 && isAddress(first)) {
    return { name: 'approve', spender: address(first), amount: BigInt(`0x${second}`) };
  }
  if (selector === SELECTORS.transferFrom && size === 3 && isAddress(first) && isAddress(second)) {
    return { name: 'transferFrom', from: address(first), to: address(second), amount: BigInt(`0x${third}`) };
  }
  return undefined;
}

function wordsOf(call: TokenCall | TokenQuery): string[] {
  if (call.name === 'transfer') return [addressWord(call.to), numberWord(call.amount)];
  if (call.name === 'approve') return [addressWord(call.spender), numberWord(call.amount)];
  if (call.name === 'transferFrom')
    return [addressWord(call.from), addressWord(call.to), numberWord(call.amount)];
  if (call.name === 'balanceOf') return [addressWord(call.owner)];
  if (call.name === 'allowance') return [addressWord(call.owner), addressWord(call.spender)];
  return [];
}

// Splits calldata (selector || 32-byte words) into hex strings. Returns undefined if it has another length.
function readWords(data: Uint8Array): readonly string[] | undefined {
  if (data.length < 4 || data.length > 100 || (data.length - 4) % 32 !== 0) return undefined;
  const hex = bytesToHex(data);
  return [hex.slice(0, 8), ...(hex.slice(8).match(/.{64}/g) ?? [])];
}

function isAddress(word: string): boolean {
  return word.startsWith('0'.repeat(24));
}

function address(word: string): string {
  return `0x${word.slice(24)}`;
}

function addressWord(text: string): string {
  return text.slice(2).toLowerCase().padStart(64, '0');
}

function numberWord(value: bigint): string {
  return value.toString(16).padStart(64, '0');
}
