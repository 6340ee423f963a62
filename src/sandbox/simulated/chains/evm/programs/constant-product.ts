import { RevertError } from '../../ledger.ts';

/*
 * The arithmetic of Uniswap V2 with its fee of 0.3 %. Source: v2-periphery, UniswapV2Library; v2-core, UniswapV2Pair.
 */

const MAX_UINT256 = 2n ** 256n - 1n;
const MAX_UINT112 = 2n ** 112n - 1n;

/** The output for an exact input. Throws RevertError. */
export function amountOutOf(amountIn: bigint, reserveIn: bigint, reserveOut: bigint): bigint {
  if (amountIn === 0n) throw libraryError('INSUFFICIENT_INPUT_AMOUNT');
  if (reserveIn === 0n || reserveOut === 0n) throw libraryError('INSUFFICIENT_LIQUIDITY');
  const inputWithFee = times(amountIn, 997n);
  return times(inputWithFee, reserveOut) / plus(times(reserveIn, 1000n), inputWithFee);
}

/** The smallest input for an exact output. Throws RevertError. */
export function amountInOf(amountOut: bigint, reserveIn: bigint, reserveOut: bigint): bigint {
  if (amountOut === 0n) throw libraryError('INSUFFICIENT_OUTPUT_AMOUNT');
  if (reserveIn === 0n || reserveOut === 0n) throw libraryError('INSUFFICIENT_LIQUIDITY');
  const numerator = times(times(reserveIn, amountOut), 1000n);
  if (amountOut > reserveOut) throw new RevertError('execution reverted: ds-math-sub-underflow');
  const denominator = (reserveOut - amountOut) * 997n;
  // Solidity reverts a division by zero without a reason.
  if (denominator === 0n) throw new RevertError('execution reverted');
  return numerator / denominator + 1n;
}

/** The worth of an amount at the ratio of the reserves, without the fee. Throws RevertError. */
export function quoteOf(amount: bigint, reserveA: bigint, reserveB: bigint): bigint {
  if (amount === 0n) throw libraryError('INSUFFICIENT_AMOUNT');
  if (reserveA === 0n || reserveB === 0n) throw libraryError('INSUFFICIENT_LIQUIDITY');
  return times(amount, reserveB) / reserveA;
}

/** INVARIANT: x · y, with the fee taken off the inputs, never falls. Throws RevertError. */
export function requireProductKept(
  before: readonly [bigint, bigint],
  after: readonly [bigint, bigint],
  inputs: readonly [bigint, bigint],
): void {
  const adjusted = after.map((balance, index) => balance * 1000n - inputs[index]! * 3n);
  if (adjusted[0]! * adjusted[1]! < before[0] * before[1] * 1000n ** 2n) {
    throw new RevertError('execution reverted: UniswapV2: K');
  }
  if (after.some((balance) => balance > MAX_UINT112)) {
    throw new RevertError('execution reverted: UniswapV2: OVERFLOW');
  }
}

export function libraryError(reason: string): RevertError {
  return new RevertError(`execution reverted: UniswapV2Library: ${reason}`);
}

function times(left: bigint, right: bigint): bigint {
  const product = left * right;
  if (product > MAX_UINT256) throw new RevertError('execution reverted: ds-math-mul-overflow');
  return product;
}

function plus(left: bigint, right: bigint): bigint {
  const sum = left + right;
  if (sum > MAX_UINT256) throw new RevertError('execution reverted: ds-math-add-overflow');
  return sum;
}
