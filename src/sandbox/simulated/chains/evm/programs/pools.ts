import { rawAmountWorth } from '../../../exchange/rates.ts';
import { fixedUsd } from '../../../prices.ts';
import { RevertError } from '../../ledger.ts';
import { hasNativeAsset } from '../../sponsors.ts';
import { knownToken } from '../../world.ts';
import { give } from '../faucet.ts';
import { type Frame, sendToken } from '../frame.ts';
import type { EvmState } from '../state.ts';
import { pairAddress, sortTokens, wrappedNativeOn } from './addresses.ts';
import { libraryError, requireProductKept } from './constant-product.ts';
import type { ProgramView } from './program.ts';

/** The key of a pair in the state of contracts. */
export const POOL = 'pool';
/** US dollars of each token in a new pair. */
const SIDE_USD = 1_000_000n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** A pair of tokens in order, and what it last counted of each. */
export interface Pool {
  readonly tokens: readonly [string, string];
  readonly reserves: readonly [bigint, bigint];
  readonly seconds: number;
}

interface Priced {
  readonly price: string;
  readonly decimals: number;
  readonly symbol: string;
}

export function readPool({ state }: ProgramView, address: string): Pool | undefined {
  return state.contracts.get<Pool>(address, POOL);
}

/**
 * The address of the pair of two tokens, which the faucet stocks when it is first asked for; undefined if there is
 * none.
 *
 * CHOICE: every two tokens with a price and a name on a chain have a pair, of $1,000,000 of each at the fixed prices.
 */
export function findPair(view: ProgramView, one: string, other: string): string | undefined {
  const tokens = sortTokens(one, other);
  if (tokens[0] === tokens[1]) return undefined;
  const address = pairAddress(...tokens);
  if (readPool(view, address) !== undefined) return address;
  const sides = tokens.map((token) => pricedToken(view.state, token));
  const [first, second] = sides;
  if (first === undefined || second === undefined) return undefined;
  const reserves = [first, second].map((side) => rawAmountWorth(SIDE_USD, side));
  for (const [index, asset] of tokens.entries()) {
    const { decimals, symbol } = sides[index]!;
    const rawAmount = reserves[index]!;
    give(view.state, view.block, { owner: address, asset, rawAmount, decimals, symbol });
    if (asset === wrappedNativeOn(view.state.caip2)) backWithNative(view, asset, rawAmount);
  }
  const pool: Pool = { tokens, reserves: [reserves[0]!, reserves[1]!], seconds: view.block.seconds };
  view.state.contracts.set(address, POOL, pool);
  return address;
}

/** INVARIANT: the wrapped native asset is backed by as much of the native one. */
function backWithNative({ state, block }: ProgramView, owner: string, rawAmount: bigint): void {
  give(state, block, { owner, asset: '', rawAmount });
}

/** The tokens of the pair at an address, also before anybody has used it. Undefined for other addresses. */
export function tokensOfPair(state: EvmState, address: string): readonly [string, string] | undefined {
  return state.contracts.get<Pool>(address, POOL)?.tokens ?? state.plannedPairs().get(address);
}

/** All pairs that a chain may have, by address. */
export function pairsOn(
  chain: Pick<EvmState, 'world' | 'caip2' | 'chainId'>,
): ReadonlyMap<string, readonly [string, string]> {
  const known = chain.world.knownTokens().filter(({ caip2 }) => caip2 === chain.caip2);
  const addresses = [wrappedNativeOn(chain.caip2), ...known.map(({ address }) => address.toLowerCase())];
  const priced = [...new Set(addresses)].filter((token) => pricedToken(chain, token) !== undefined);
  const pairs = new Map<string, readonly [string, string]>();
  for (const [index, one] of priced.entries()) {
    for (const other of priced.slice(index + 1)) pairs.set(pairAddress(one, other), sortTokens(one, other));
  }
  return pairs;
}

function pricedToken(
  { world, caip2, chainId }: Pick<EvmState, 'world' | 'caip2' | 'chainId'>,
  token: string,
): Priced | undefined {
  if (token === wrappedNativeOn(caip2) && hasNativeAsset({ chainId })) {
    const native = world.nativeSymbol(caip2);
    const price = fixedUsd(native);
    return price === undefined ? undefined : { price, decimals: 18, symbol: `W${native.toUpperCase()}` };
  }
  const known = knownToken(world, caip2, token);
  const price = known && fixedUsd(known.symbol.toLowerCase());
  return known === undefined || price === undefined
    ? undefined
    : { price, decimals: known.decimals, symbol: known.symbol };
}

/** The reserves of a pair, those of `tokenIn` first. Throws RevertError. */
export function reservesOf(view: ProgramView, tokenIn: string, tokenOut: string): [bigint, bigint] {
  if (tokenIn === tokenOut) throw libraryError('IDENTICAL_ADDRESSES');
  if (tokenIn === NO_ADDRESS || tokenOut === NO_ADDRESS) throw libraryError('ZERO_ADDRESS');
  const address = findPair(view, tokenIn, tokenOut);
  const pool = address === undefined ? undefined : readPool(view, address);
  // The router calls a pair without code, which reverts without a reason.
  if (pool === undefined) throw new RevertError('execution reverted');
  const [first, second] = pool.reserves;
  return pool.tokens[0] === tokenIn ? [first, second] : [second, first];
}

/** Pays `amountOut` for what has arrived at the pair since its last swap. Throws RevertError. */
export function swapInPair(
  frame: Frame,
  { tokenIn, tokenOut, amountOut, to }: { tokenIn: string; tokenOut: string; amountOut: bigint; to: string },
): void {
  const address = pairAddress(tokenIn, tokenOut);
  const pool = readPool(frame, address);
  if (pool === undefined) throw new RevertError('execution reverted');
  if (amountOut === 0n) throw pairError('INSUFFICIENT_OUTPUT_AMOUNT');
  const isFirstOut = pool.tokens[0] === tokenOut;
  const outputs = isFirstOut ? ([amountOut, 0n] as const) : ([0n, amountOut] as const);
  if (outputs[0] >= pool.reserves[0] || outputs[1] >= pool.reserves[1]) {
    throw pairError('INSUFFICIENT_LIQUIDITY');
  }
  if (pool.tokens.includes(to)) throw pairError('INVALID_TO');
  sendToken(frame, tokenOut, address, to, amountOut);
  const { ledger } = frame.state;
  const after = [ledger.balance(address, pool.tokens[0]), ledger.balance(address, pool.tokens[1])] as const;
  const inputs = [
    arrived(after[0], pool.reserves[0] - outputs[0]),
    arrived(after[1], pool.reserves[1] - outputs[1]),
  ] as const;
  if (inputs[0] === 0n && inputs[1] === 0n) throw pairError('INSUFFICIENT_INPUT_AMOUNT');
  requireProductKept(pool.reserves, after, inputs);
  const next: Pool = { ...pool, reserves: after, seconds: frame.block.seconds };
  frame.state.contracts.set(address, POOL, next);
}

function arrived(balance: bigint, expected: bigint): bigint {
  return balance > expected ? balance - expected : 0n;
}

function pairError(reason: string): RevertError {
  return new RevertError(`execution reverted: UniswapV2: ${reason}`);
}
