import { shortAmount } from '../names.ts';

/** An amount of an asset, rounded where it is long, with the exact amount on hover. */
export function Amount({ of, asset }: { readonly of: string; readonly asset: string | null | undefined }) {
  const unit = asset?.toUpperCase() ?? '';
  return (
    <span class="amount" title={`${of} ${unit}`}>
      {shortAmount(of)} {unit}
    </span>
  );
}
