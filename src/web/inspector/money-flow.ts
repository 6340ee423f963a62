import type { SandboxAssetBooks } from '../../sandbox/generated/schemas.ts';

/** A source or a holder of money. `from` and `to` are its position in the whole, from 0 to 1. */
export interface FlowEnd {
  readonly name: string;
  /** In base units. */
  readonly amount: bigint;
  readonly from: number;
  readonly to: number;
}

/**
 * A band from a source to a holder. Its position on both sides is a part of the whole, from 0 to 1. Both columns have
 * the same sum.
 */
interface FlowBand {
  readonly source: string;
  readonly holder: string;
  readonly from: number;
  readonly to: number;
}

export interface MoneyFlow {
  readonly sources: readonly FlowEnd[];
  readonly holders: readonly FlowEnd[];
  readonly bands: readonly FlowBand[];
}

const SHARES = 1_000_000n;

/**
 * Returns the flow of one asset from its sources to its holders. What smart contracts have burned counts as a holder.
 * The bands between the columns are arbitrary, because money is fungible: each source feeds the holders in their
 * order.
 */
export function flowOf({
  given,
  minted,
  held,
}: Pick<SandboxAssetBooks, 'given' | 'minted' | 'held'>): MoneyFlow {
  const made = BigInt(minted);
  const sources = positive([
    ['faucet', BigInt(given)],
    ['minted by contracts', made],
  ]);
  const holders = positive([
    ...Object.entries(held).map(([name, amount]): [string, bigint] => [name, BigInt(amount)]),
    ['burned by contracts', -made],
  ]);
  const [left, right] = [ends(sources), ends(holders)];
  const bands: FlowBand[] = [];
  for (const source of left) {
    for (const holder of right) {
      const from = Math.max(source.from, holder.from);
      const to = Math.min(source.to, holder.to);
      if (to <= from) continue;
      bands.push({ source: source.name, holder: holder.name, from, to });
    }
  }
  return { sources: left, holders: right, bands };
}

function positive(all: readonly [string, bigint][]): readonly [string, bigint][] {
  return all.filter(([, amount]) => amount > 0n).sort(([, a], [, b]) => (a > b ? -1 : a < b ? 1 : 0));
}

/**
 * Moves the centers of labels down, then up, until no label overlaps another or crosses the edge.
 *
 * @param height the height of the picture.
 * @param each the height of a label.
 */
export function spread(
  middles: readonly number[],
  { height, each }: { readonly height: number; readonly each: number },
): readonly number[] {
  let least = each / 2;
  const downwards = middles.map((middle) => {
    const placed = Math.max(middle, least);
    least = placed + each;
    return placed;
  });
  let most = height - each / 2;
  return downwards
    .toReversed()
    .map((middle) => {
      const placed = Math.min(middle, most);
      most = placed - each;
      return placed;
    })
    .toReversed();
}

/** Stacks amounts from top to bottom. */
function ends(all: readonly [string, bigint][]): readonly FlowEnd[] {
  const whole = all.reduce((sum, [, amount]) => sum + amount, 0n);
  let before = 0n;
  return all.map(([name, amount]) => {
    const from = Number((before * SHARES) / whole) / Number(SHARES);
    before += amount;
    return { name, amount, from, to: Number((before * SHARES) / whole) / Number(SHARES) };
  });
}
