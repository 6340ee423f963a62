import { decimalText, fromRaw, readDecimal, toRaw } from './decimal.ts';
import { assetAtAddress } from './known-assets.ts';
import { chainNamed, chainOfCaip2, knownChains } from './known-chains.ts';

/** The unit in which people read an amount, instead of base units such as wei. */
export interface AmountUnit {
  readonly symbol: string;
  readonly decimals: number;
}

/** The members by which a condition of a policy or the metric of an aggregation names a field. */
interface Field {
  readonly field_source: string;
  readonly field: string;
}

/** A condition of a rule, or what is known about the request in the same form. */
interface Known extends Field {
  readonly operator: string;
  readonly value: string | readonly string[];
}

/**
 * Returns the unit of a number that a field has, or undefined if the number is not an amount of a known asset. The
 * other conditions of the rule can name the chain, the token contract or the mint.
 */
export function unitOf(
  { field_source: source, field }: Field,
  others: readonly Known[],
): AmountUnit | undefined {
  const named = (ofSource: string, ofField: string): string | undefined => {
    const found = others.find((each) => each.field_source === ofSource && each.field === ofField);
    const values = found === undefined || !['eq', 'in'].includes(found.operator) ? [] : [found.value].flat();
    return values.length === 1 ? values[0] : undefined;
  };
  const chain = chainOfCaip2(`eip155:${named('ethereum_transaction', 'chain_id')}`);
  switch (source) {
    case 'ethereum_transaction':
      // If no condition names the chain, this assumes the native asset that most chains have.
      return field === 'value' ? unitOfAsset((chain ?? chainNamed('ethereum'))?.native) : undefined;
    case 'ethereum_calldata': {
      const token = named('ethereum_transaction', 'to');
      const chains = chain === undefined ? knownChains({ isTestnet: false, chainType: 'ethereum' }) : [chain];
      return token === undefined || !/^(transfer|transferFrom|approve)\./.test(field)
        ? undefined
        : unitOfAsset(chains.map((each) => assetAtAddress(each, token)).find((each) => each !== undefined));
    }
    case 'solana_system_program_instruction':
      return field.endsWith('.lamports') ? unitOfAsset(chainNamed('solana')?.native) : undefined;
    case 'solana_token_program_instruction': {
      const mint = field.endsWith('.amount') ? named(source, field.replace(/amount$/, 'mint')) : undefined;
      return mint === undefined ? undefined : unitOfAsset(assetAtAddress(chainNamed('solana')!, mint));
    }
    case 'tron_transaction':
      return ['TransferContract.amount', 'TriggerSmartContract.call_value'].includes(field)
        ? unitOfAsset(chainNamed('tron')?.native)
        : undefined;
    case 'xrpl_transaction':
      return field.endsWith('.drops') ? { symbol: 'XRP', decimals: 6 } : undefined;
    default:
      return undefined;
  }
}

function unitOfAsset(asset: { readonly asset: string; readonly decimals: number } | undefined) {
  return asset === undefined ? undefined : { symbol: asset.asset.toUpperCase(), decimals: asset.decimals };
}

/** Writes base units as a number of whole units. Returns undefined for a string that is not a decimal integer. */
export function amountText(base: string, { decimals }: AmountUnit): string | undefined {
  return /^\d{1,100}$/.test(base) ? decimalText(fromRaw(BigInt(base), decimals)) : undefined;
}

/**
 * Converts a number of whole units to base units. Returns undefined for a text that is not a number, and for a number
 * with more decimal places than the asset has.
 */
export function baseUnits(amount: string, { decimals }: AmountUnit): string | undefined {
  const decimal = readDecimal(amount.trim());
  const base = decimal === undefined ? undefined : toRaw(decimal, decimals);
  return base === undefined ? undefined : String(base);
}
