import {
  encodeTokenCall,
  pairFactory,
  swapRouter,
  wrappedNative,
} from '../engine/signing/ethereum/contract-calls.ts';
import type { Chains, EvmChain, SwapOrder, SwapRefusal, SwapRoute, SwapRoutes } from '../ports/chains.ts';
import type { Clock } from '../ports/runtime.ts';

// CHOICE: a quote is shown as valid for a minute. A signed swap can be included for twenty minutes of chain time.
const QUOTE_SECONDS = 60;
const DEADLINE_SECONDS = 1200n;
const FULL_BPS = 10_000n;
// CHOICE: the maximum difference between the quotes of nodes, which may be a few blocks apart: 1/100.
const QUOTE_TOLERANCE = 100n;
const MAX_UINT256 = 2n ** 256n - 1n;
// CHOICE: an amount of gas close to what the contracts use.
const ROUTER_GAS = 60_000n;
const HOP_GAS = 60_000n;
const WRAP_GAS = 50_000n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

export interface RouterOptions {
  readonly chains: Chains;
  readonly clock: Clock;
  /** Returns the router of a chain; undefined if none is configured. */
  routerOf(caip2: string): string | undefined;
  /** Returns the configured token that wraps the native asset, if any. */
  wrappedOf?(caip2: string): string | undefined;
}

/** The router of one chain, with the constants of its deployment. */
interface Router {
  readonly chain: EvmChain;
  readonly address: string;
  /** The lower-case address of the token that wraps the native asset. */
  readonly wrapped: string;
  readonly factory: string;
}

/**
 * Returns the source of routes through routers with the interface of Uniswap V2. It makes only read-only calls, and
 * serves simulated and real chains. The native asset is swapped for its wrapped token at one to one. A pair without a
 * pool goes through the wrapped token.
 *
 * INVARIANT: only the configured router, and the wrapped token that it names, are ever called or approved.
 */
export function routersOnChain({ chains, clock, routerOf, wrappedOf }: RouterOptions): SwapRoutes {
  const known = new Map<string, Router>();
  async function find(caip2: string): Promise<Router | undefined> {
    const found = known.get(caip2);
    const address = routerOf(caip2);
    const chain = chains.find(caip2);
    if (found !== undefined || address === undefined || chain?.kind !== 'evm') return found;
    const router = await connect(chain, address);
    const expected = wrappedOf?.(caip2)?.toLowerCase() ?? router.wrapped;
    if (expected !== router.wrapped) {
      throw new Error(
        `expected a router for \`${expected}\` on \`${caip2}\`, got one for \`${router.wrapped}\``,
      );
    }
    known.set(caip2, router);
    return router;
  }
  return {
    supports: (caip2) => routerOf(caip2) !== undefined,
    async route(order) {
      const router = await find(order.caip2);
      if (router === undefined) return { fault: 'pair', message: 'swaps are not routed on this chain' };
      const expiresAtSeconds = Math.floor(clock.now() / 1000) + QUOTE_SECONDS;
      const side = (token: string | null): string => token?.toLowerCase() ?? router.wrapped;
      const route =
        side(order.tokenIn) === side(order.tokenOut)
          ? wrapRoute(router, order)
          : await swapRoute(router, order);
      return 'fault' in route ? route : { ...route, expiresAtSeconds };
    },
  };
}

async function connect(chain: EvmChain, address: string): Promise<Router> {
  const ask = async (name: 'WETH' | 'factory'): Promise<string> => {
    const data = swapRouter.encodeCall(name);
    const answer = await chain.read({ to: address, data, isConstant: true });
    const [value] = swapRouter.decodeResult(name, answer) ?? [];
    if (typeof value !== 'string') {
      throw new Error(`expected a Uniswap V2 router at \`${address}\` on \`${chain.caip2}\``);
    }
    return value.toLowerCase();
  };
  const [wrapped, factory] = await Promise.all([ask('WETH'), ask('factory')]);
  return { chain, address: address.toLowerCase(), wrapped, factory };
}

type Route = Omit<SwapRoute, 'expiresAtSeconds'>;

/** Wraps or unwraps the native asset. */
function wrapRoute({ wrapped }: Router, order: SwapOrder): Route | SwapRefusal {
  const { rawAmount, sender, recipient, tokenIn } = order;
  const amounts = {
    rawInput: rawAmount,
    rawInputMax: rawAmount,
    rawOutput: rawAmount,
    rawOutputMin: rawAmount,
  };
  const isElsewhere = recipient.toLowerCase() !== sender.toLowerCase();
  const common = { ...amounts, spender: null, gasUnits: WRAP_GAS };
  if (tokenIn === null) {
    const deposit = { to: wrapped, value: rawAmount, data: wrappedNative.encodeCall('deposit') };
    const onward = { to: wrapped, value: 0n, data: transferCall(recipient, rawAmount) };
    const minted = { token: wrapped, from: NO_ADDRESS, to: sender };
    const received = isElsewhere ? { token: wrapped, from: sender, to: recipient } : minted;
    return { ...common, calls: isElsewhere ? [deposit, onward] : [deposit], spent: minted, received };
  }
  if (isElsewhere) {
    // CHOICE: unwrapping for another recipient is refused. A second transaction would have to spend the output of the
    // first one, which nodes do not accept.
    return { fault: 'pair', message: 'a wrapped asset is unwrapped to the wallet itself only' };
  }
  const burned = { token: wrapped, from: sender, to: NO_ADDRESS };
  const data = wrappedNative.encodeCall('withdraw', rawAmount);
  return { ...common, calls: [{ to: wrapped, value: 0n, data }], spent: burned, received: burned };
}

function transferCall(to: string, rawAmount: bigint): Uint8Array {
  return encodeTokenCall({ name: 'transfer', to: to.toLowerCase(), amount: rawAmount });
}

async function swapRoute(router: Router, order: SwapOrder): Promise<Route | SwapRefusal> {
  const paths = await tradedPaths(router, order);
  if (paths.length === 0) return { fault: 'pair', message: 'no pool exchanges this pair' };
  const quoted = await Promise.all(paths.map((path) => amountsOn(router, path, order)));
  const isInput = order.amountType === 'exact_input';
  const best = quoted
    .filter((amounts) => amounts !== undefined)
    .toSorted((a, b) => (isInput ? compare(b.rawOutput, a.rawOutput) : compare(a.rawInput, b.rawInput)))[0];
  if (best === undefined || best.rawOutput === 0n) {
    const message = isInput
      ? 'the amount is too small for any output'
      : 'the amount exceeds what the pools hold';
    return { fault: 'amount', message };
  }
  const bounds = boundsOf(best, order);
  if (bounds.rawInputMax > MAX_UINT256) {
    return { fault: 'amount', message: 'the amount exceeds what the pools hold' };
  }
  const deadline = BigInt(await router.chain.latestSeconds()) + DEADLINE_SECONDS;
  const { tokenIn, tokenOut, sender, recipient } = order;
  const through = { token: router.wrapped };
  return {
    ...bounds,
    calls: [{ to: router.address, ...callOf(order, { ...bounds, path: best.path, deadline }) }],
    spender: tokenIn === null ? null : router.address,
    gasUnits: ROUTER_GAS + HOP_GAS * BigInt(best.path.length - 1),
    // The router wraps and unwraps the native asset itself, and returns the unspent part.
    spent:
      tokenIn === null
        ? { ...through, from: NO_ADDRESS, to: router.address }
        : { token: tokenIn, from: sender },
    received:
      tokenOut === null
        ? { ...through, from: router.address, to: NO_ADDRESS }
        : { token: tokenOut, to: recipient },
  };
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns the direct path and the path through the wrapped token, if their pools exist. */
async function tradedPaths(router: Router, { tokenIn, tokenOut }: SwapOrder): Promise<string[][]> {
  const { wrapped } = router;
  const [from, to] = [tokenIn?.toLowerCase() ?? wrapped, tokenOut?.toLowerCase() ?? wrapped];
  const paths =
    from === wrapped || to === wrapped
      ? [[from, to]]
      : [
          [from, to],
          [from, wrapped, to],
        ];
  const isTraded = await Promise.all(paths.map((path) => hasPools(router, path)));
  return paths.filter((_, index) => isTraded[index]);
}

async function hasPools({ chain, factory }: Router, path: readonly string[]): Promise<boolean> {
  const pairs = path.slice(1).map(async (token, index) => {
    const data = pairFactory.encodeCall('getPair', path[index]!, token);
    // The address of a pair never changes once it exists.
    const answer = await chain.read({ to: factory, data, isConstant: true });
    const [pair] = pairFactory.decodeResult('getPair', answer) ?? [];
    return typeof pair === 'string' && pair !== NO_ADDRESS;
  });
  return (await Promise.all(pairs)).every((exists) => exists);
}

interface PathAmounts {
  readonly path: readonly string[];
  readonly rawInput: bigint;
  readonly rawOutput: bigint;
}

/** Reads the output or the cost of a path from the router. Returns undefined when the router has none. */
async function amountsOn(
  { chain, address }: Router,
  path: readonly string[],
  { amountType, rawAmount }: SwapOrder,
): Promise<PathAmounts | undefined> {
  const isInput = amountType === 'exact_input';
  const name = isInput ? 'getAmountsOut' : 'getAmountsIn';
  const read = (answer: Uint8Array): PathAmounts | undefined => {
    const [amounts] = (swapRouter.decodeResult(name, answer) ?? []) as [bigint[]?];
    const [rawInput, rawOutput] = [amounts?.at(0), amounts?.at(-1)];
    return rawInput === undefined || rawOutput === undefined ? undefined : { path, rawInput, rawOutput };
  };
  const answer = await chain.read({
    to: address,
    data: swapRouter.encodeCall(name, rawAmount, path),
    settle: (answers) =>
      bestOf(answers, (each) => (isInput ? read(each)?.rawOutput : read(each)?.rawInput), isInput),
  });
  return read(answer);
}

/**
 * Returns the best of the nodes' results for the wallet. The slippage then limits the loss if the price in the block is
 * worse, or if a node reports false data. Returns undefined if the results differ by more than a few blocks explain.
 */
function bestOf(
  answers: readonly Uint8Array[],
  amountOf: (answer: Uint8Array) => bigint | undefined,
  isHigherBetter: boolean,
): Uint8Array | undefined {
  const quotes = answers.map((answer) => ({ answer, amount: amountOf(answer) }));
  const known = quotes.filter((quote): quote is Quote => quote.amount !== undefined);
  if (known.length === 0) return answers[0];
  if (known.length < quotes.length) return undefined;
  const ordered = known.toSorted((a, b) => compare(a.amount, b.amount));
  const [lowest, highest] = [ordered[0]!, ordered.at(-1)!];
  const difference = highest.amount - lowest.amount;
  // For small amounts, rounding alone can exceed the tolerance.
  if (difference > 1n && difference * QUOTE_TOLERANCE > highest.amount) return undefined;
  return isHigherBetter ? highest.answer : lowest.answer;
}

interface Quote {
  readonly answer: Uint8Array;
  readonly amount: bigint;
}

/** Returns the limits that the smart contract enforces, rounded in favor of the wallet. */
function boundsOf({ rawInput, rawOutput }: PathAmounts, { amountType, slippageBps, rawAmount }: SwapOrder) {
  const slippage = BigInt(slippageBps);
  // INVARIANT: the amount that the order fixes, which policies evaluate, is never taken from a node's response.
  if (amountType === 'exact_input') {
    const rawOutputMin = (rawOutput * (FULL_BPS - slippage)) / FULL_BPS;
    return { rawInput: rawAmount, rawInputMax: rawAmount, rawOutput, rawOutputMin };
  }
  const rawInputMax = (rawInput * (FULL_BPS + slippage) + FULL_BPS - 1n) / FULL_BPS;
  return { rawInput, rawInputMax, rawOutput: rawAmount, rawOutputMin: rawAmount };
}

interface CallTerms {
  readonly rawInputMax: bigint;
  readonly rawOutputMin: bigint;
  readonly path: readonly string[];
  readonly deadline: bigint;
}

/**
 * Returns the call of the router for a swap. Its function depends on which amount is exact, and on whether the native
 * asset is spent or received.
 */
function callOf(order: SwapOrder, { rawInputMax, rawOutputMin, path, deadline }: CallTerms) {
  const { amountType, tokenIn, tokenOut, recipient } = order;
  const end = [path, recipient.toLowerCase(), deadline] as const;
  const value = tokenIn === null ? rawInputMax : 0n;
  if (amountType === 'exact_input') {
    if (tokenIn === null)
      return { value, data: swapRouter.encodeCall('swapExactETHForTokens', rawOutputMin, ...end) };
    const name = tokenOut === null ? 'swapExactTokensForETH' : 'swapExactTokensForTokens';
    return { value, data: swapRouter.encodeCall(name, rawInputMax, rawOutputMin, ...end) };
  }
  if (tokenIn === null)
    return { value, data: swapRouter.encodeCall('swapETHForExactTokens', rawOutputMin, ...end) };
  const name = tokenOut === null ? 'swapTokensForExactETH' : 'swapTokensForExactTokens';
  return { value, data: swapRouter.encodeCall(name, rawOutputMin, rawInputMax, ...end) };
}
