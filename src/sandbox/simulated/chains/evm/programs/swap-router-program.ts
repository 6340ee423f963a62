import {
  pairFactory,
  swapPair,
  swapRouter,
  wrappedNative,
} from '../../../../../engine/signing/ethereum/contract-calls.ts';
import { decodeTokenCall } from '../../../../../engine/signing/ethereum/token-calls.ts';
import { RevertError } from '../../ledger.ts';
import { hasNativeAsset } from '../../sponsors.ts';
import { applyTokenCall } from '../../token-effects.ts';
import { effectsOf, type Frame, moveValue, pullToken, sendToken } from '../frame.ts';
import { PAIR_FACTORY_ADDRESS, pairAddress, SWAP_ROUTER_ADDRESS, wrappedNativeOn } from './addresses.ts';
import { amountInOf, amountOutOf, libraryError, quoteOf } from './constant-product.ts';
import { findPair, POOL, readPool, reservesOf, swapInPair, tokensOfPair } from './pools.ts';
import type { Program, ProgramCall, ProgramView } from './program.ts';

/*
 * SIMULATED swapRoutes: swaps on one EVM chain go through a simulated Uniswap V2 router and its pools.
 * PRODUCTION: swaps go through the routers that the operator names; 400 `not_supported` on chains without one.
 * SETTING: `--rpc` with `--swap-router`; `CUSTOS_SWAP_ROUTERS` for `custos serve`.
 */

// CHOICE: gas close to what the contracts use.
const ROUTER_GAS = 60_000n;
const HOP_GAS = 60_000n;
const WRAP_GAS = 28_000n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;
const TOKEN_GAS = 35_000n;

/** A router for exact inputs and outputs over the pools. Source: v2-periphery, UniswapV2Router02. */
export const swapRouterProgram: Program = {
  run(frame, call) {
    const decoded = swapRouter.decodeCall(call.data);
    // The contract accepts the native asset from the wrapped one only.
    if (decoded === undefined) throw new RevertError('execution reverted');
    const order = orderOf(decoded.name, decoded.args, call.value);
    if (order === undefined) throw new RevertError('execution reverted');
    if (!order.isPaidInNative && call.value > 0n) throw new RevertError('execution reverted');
    return swapRouter.encodeResult(decoded.name, swap(frame, call, order));
  },
  read(view, data) {
    const decoded = swapRouter.decodeCall(data);
    if (decoded === undefined) return undefined;
    const { name, args } = decoded;
    if (name === 'factory') return swapRouter.encodeResult(name, PAIR_FACTORY_ADDRESS);
    if (name === 'WETH') return swapRouter.encodeResult(name, wrappedOf(view));
    const [first, second, third] = args as [bigint, never, bigint];
    if (name === 'getAmountsOut') return swapRouter.encodeResult(name, amountsOut(view, first, second));
    if (name === 'getAmountsIn') return swapRouter.encodeResult(name, amountsIn(view, first, second));
    const formulas = { getAmountOut: amountOutOf, getAmountIn: amountInOf, quote: quoteOf };
    if (name !== 'getAmountOut' && name !== 'getAmountIn' && name !== 'quote') return undefined;
    return swapRouter.encodeResult(name, formulas[name](first, second, third));
  },
};

export const pairFactoryProgram: Program = {
  run: refuse,
  read(view, data) {
    const call = pairFactory.decodeCall(data);
    if (call?.name === 'getPair') {
      const [one, other] = call.args as [string, string];
      return pairFactory.encodeResult('getPair', findPair(view, one, other) ?? NO_ADDRESS);
    }
    if (call?.name !== 'allPairsLength') return undefined;
    return pairFactory.encodeResult('allPairsLength', BigInt(view.state.contracts.having(POOL).length));
  },
};

export function pairProgram(address: string): Program {
  return {
    // CHOICE: pairs are used through the router only.
    run: refuse,
    read(view, data) {
      const call = swapPair.decodeCall(data);
      const tokens = tokensOfPair(view.state, address);
      if (tokens !== undefined) findPair(view, ...tokens);
      const pool = readPool(view, address);
      if (call === undefined || pool === undefined) return undefined;
      if (call.name === 'factory') return swapPair.encodeResult('factory', PAIR_FACTORY_ADDRESS);
      if (call.name === 'token0') return swapPair.encodeResult('token0', pool.tokens[0]);
      if (call.name === 'token1') return swapPair.encodeResult('token1', pool.tokens[1]);
      return swapPair.encodeResult('getReserves', ...pool.reserves, pool.seconds);
    },
  };
}

/** The token that stands for the native asset. Source: WETH9. */
export function wrappedNativeProgram(address: string): Program {
  return {
    run(frame, { from, value, data }) {
      const call = wrappedNative.decodeCall(data);
      if (call?.name === 'withdraw') {
        if (value > 0n) throw new RevertError('execution reverted');
        unwrap(frame, address, from, call.args[0] as bigint);
        return undefined;
      }
      const token = decodeTokenCall(data);
      if (token === undefined) {
        wrap(frame, address, from, value);
        return undefined;
      }
      frame.gas += TOKEN_GAS;
      return applyTokenCall(effectsOf(frame), { from, token: address, value }, token);
    },
    read: () => undefined,
  };
}

function refuse(): never {
  throw new RevertError('execution reverted');
}

interface Order {
  readonly kind: 'input' | 'output';
  /** The exact amount. */
  readonly amount: bigint;
  /** The least output or the greatest input. */
  readonly limit: bigint;
  readonly path: readonly string[];
  readonly to: string;
  readonly deadline: bigint;
  readonly isPaidInNative: boolean;
  readonly isPaidOutInNative: boolean;
}

/** Undefined for functions that do not swap. */
function orderOf(name: string, args: readonly unknown[], value: bigint): Order | undefined {
  const isPaidInNative = name === 'swapExactETHForTokens' || name === 'swapETHForExactTokens';
  const isPaidOutInNative = name === 'swapExactTokensForETH' || name === 'swapTokensForExactETH';
  const kind = name.startsWith('swapExact') ? 'input' : 'output';
  if (!name.startsWith('swap')) return undefined;
  const numbers = args.slice(0, -3) as bigint[];
  const [path, to, deadline] = args.slice(-3) as [string[], string, bigint];
  const [amount, limit] = (
    name === 'swapExactETHForTokens'
      ? [value, ...numbers]
      : name === 'swapETHForExactTokens'
        ? [...numbers, value]
        : numbers
  ) as [bigint, bigint];
  return { kind, amount, limit, path, to, deadline, isPaidInNative, isPaidOutInNative };
}

/** The account that a call of the router pays; undefined for other calls. */
export function swapRecipient(data: Uint8Array): string | undefined {
  const call = swapRouter.decodeCall(data);
  return call && orderOf(call.name, call.args, 0n)?.to;
}

/** Returns the amounts of all hops. */
function swap(frame: Frame, { from, value }: ProgramCall, order: Order): bigint[] {
  const { path, to } = order;
  if (order.deadline < BigInt(frame.block.seconds)) throw routerError('EXPIRED');
  const wrapped = wrappedOf(frame);
  if (order.isPaidInNative && path[0] !== wrapped) throw routerError('INVALID_PATH');
  if (order.isPaidOutInNative && path.at(-1) !== wrapped) throw routerError('INVALID_PATH');
  const isInput = order.kind === 'input';
  const amounts = isInput ? amountsOut(frame, order.amount, path) : amountsIn(frame, order.amount, path);
  const [input, output] = [amounts[0]!, amounts.at(-1)!];
  if (isInput && output < order.limit) throw routerError('INSUFFICIENT_OUTPUT_AMOUNT');
  if (!isInput && input > order.limit) throw routerError('EXCESSIVE_INPUT_AMOUNT');
  frame.gas += ROUTER_GAS + HOP_GAS * BigInt(path.length - 1);
  takeInput(frame, { payer: from, pair: pairAddress(path[0]!, path[1]!), input, token: path[0]! }, order);
  for (let hop = 0; hop < path.length - 1; hop += 1) {
    const [tokenIn, tokenOut, after] = [path[hop]!, path[hop + 1]!, path[hop + 2]];
    const last = order.isPaidOutInNative ? SWAP_ROUTER_ADDRESS : to;
    const recipient = after === undefined ? last : pairAddress(tokenOut, after);
    swapInPair(frame, { tokenIn, tokenOut, amountOut: amounts[hop + 1]!, to: recipient });
  }
  if (order.isPaidOutInNative) {
    unwrap(frame, wrapped, SWAP_ROUTER_ADDRESS, output);
    moveValue(frame, SWAP_ROUTER_ADDRESS, to, output);
  }
  if (order.isPaidInNative) moveValue(frame, SWAP_ROUTER_ADDRESS, from, value - input);
  return amounts;
}

function takeInput(
  frame: Frame,
  { payer, pair, input, token }: { payer: string; pair: string; input: bigint; token: string },
  { isPaidInNative }: Order,
): void {
  if (isPaidInNative) {
    moveValue(frame, SWAP_ROUTER_ADDRESS, token, input);
    wrap(frame, token, SWAP_ROUTER_ADDRESS, input);
    sendToken(frame, token, SWAP_ROUTER_ADDRESS, pair, input);
    return;
  }
  try {
    pullToken(frame, token, { spender: SWAP_ROUTER_ADDRESS, owner: payer, to: pair, amount: input });
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    throw new RevertError('execution reverted: TransferHelper: TRANSFER_FROM_FAILED');
  }
}

function amountsOut(view: ProgramView, amountIn: bigint, path: readonly string[]): bigint[] {
  if (path.length < 2) throw libraryError('INVALID_PATH');
  const amounts = [amountIn];
  for (let hop = 0; hop < path.length - 1; hop += 1) {
    amounts.push(amountOutOf(amounts[hop]!, ...reservesOf(view, path[hop]!, path[hop + 1]!)));
  }
  return amounts;
}

function amountsIn(view: ProgramView, amountOut: bigint, path: readonly string[]): bigint[] {
  if (path.length < 2) throw libraryError('INVALID_PATH');
  const amounts = [amountOut];
  for (let hop = path.length - 1; hop > 0; hop -= 1) {
    amounts.unshift(amountInOf(amounts[0]!, ...reservesOf(view, path[hop - 1]!, path[hop]!)));
  }
  return amounts;
}

/** The native asset has arrived at the contract; its sender gets as much of the token. */
function wrap(frame: Frame, token: string, owner: string, amount: bigint): void {
  frame.gas += WRAP_GAS;
  if (amount === 0n) return;
  frame.state.ledger.credit(owner, token, amount);
  frame.movements.push({ sender: NO_ADDRESS, recipient: owner, asset: token, amount });
}

function unwrap(frame: Frame, token: string, owner: string, amount: bigint): void {
  frame.gas += WRAP_GAS;
  // WETH9 requires the balance without a reason.
  frame.state.ledger.debit({ owner, asset: token, amount, shortfall: 'execution reverted' });
  if (amount > 0n) frame.movements.push({ sender: owner, recipient: NO_ADDRESS, asset: token, amount });
  moveValue(frame, token, owner, amount);
}

function wrappedOf({ state }: ProgramView): string {
  return hasNativeAsset(state) ? wrappedNativeOn(state.caip2) : NO_ADDRESS;
}

function routerError(reason: string): RevertError {
  return new RevertError(`execution reverted: UniswapV2Router: ${reason}`);
}
