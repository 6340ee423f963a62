/*
 * The arithmetic of OpenZeppelin's ERC4626: virtual shares and one virtual unit of the asset make an attack by
 * inflation cost more than it earns. The caller bears the rounding.
 */

/** The amounts of a vault. */
export interface VaultTotals {
  readonly assets: bigint;
  readonly shares: bigint;
  /** 10 ** offset; the offset is the decimals of shares less those of the asset. */
  readonly virtualShares: bigint;
}

export type Rounding = 'down' | 'up';

// shares = assets · (total shares + virtual shares) / (total assets + 1)
export function sharesFor(totals: VaultTotals, assets: bigint, rounding: Rounding): bigint {
  return divide(assets * (totals.shares + totals.virtualShares), totals.assets + 1n, rounding);
}

// assets = shares · (total assets + 1) / (total shares + virtual shares)
export function assetsFor(totals: VaultTotals, shares: bigint, rounding: Rounding): bigint {
  return divide(shares * (totals.assets + 1n), totals.shares + totals.virtualShares, rounding);
}

function divide(dividend: bigint, divisor: bigint, rounding: Rounding): bigint {
  return (dividend + (rounding === 'up' ? divisor - 1n : 0n)) / divisor;
}
