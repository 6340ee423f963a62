import { decimalText, readDecimal, round } from '../../../engine/assets/decimal.ts';
import { groupedText } from '../names.ts';

const MAX_DECIMALS = 6;
/** The decimals of an amount of 1,000 or more. */
const FEW_DECIMALS = 2;

/** Formats a decimal amount for a list, such as `100,000`, `1,493.27` or `0.000011`. */
export function shortAmount(amount: string): string {
  const decimal = readDecimal(amount);
  if (decimal === undefined) return amount;
  const isLarge = decimal.digits >= 1000n * 10n ** BigInt(decimal.scale);
  const rounded = round(decimal, isLarge ? FEW_DECIMALS : MAX_DECIMALS);
  if (rounded.digits === 0n && decimal.digits > 0n) return '<0.000001';
  return groupedText(decimalText(rounded));
}

/** An amount of an asset, rounded where it is long, with the exact amount on hover. */
export function Amount({ of, asset }: { readonly of: string; readonly asset: string | null | undefined }) {
  const unit = asset?.toUpperCase() ?? '';
  return (
    <span class="amount" title={`${of} ${unit}`}>
      {shortAmount(of)} {unit}
    </span>
  );
}
