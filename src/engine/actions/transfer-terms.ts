import type { QuoteWalletTransferRequest, TransferRequest } from '../../generated/schemas.ts';
import { readChainAddress } from '../assets/addresses.ts';
import { type Decimal, decimalText, readDecimal } from '../assets/decimal.ts';
import { assetAtAddress, assetNamed, type KnownAsset } from '../assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../assets/known-chains.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid, notSupported } from './request-terms-error.ts';

/** The asset spent: one that the contract names, or a token by contract or mint. */
type TransferSource = KnownAsset | { readonly chain: KnownChain; readonly tokenAddress: string };

interface TransferArrival {
  readonly chain: KnownChain;
  /** Undefined when the source is a token without a name, or its name is unknown on the chain. */
  readonly asset: KnownAsset | undefined;
}

/** A transfer as requested, with everything checked that needs no chain call. */
export interface TransferTerms {
  readonly source: TransferSource;
  /** In units of the asset that `amountType` fixes, above 0. */
  readonly amount: Decimal;
  /** The amount as written in the body. */
  readonly amountText: string;
  /** Where `amountText` stands in the body. */
  readonly amountPointer: string;
  /** Which side of an exchange the amount fixes; without an exchange both sides are equal. */
  readonly amountType: 'exact_input' | 'exact_output';
  /** In the chain type's notation. */
  readonly destination: string;
  /** The arriving asset and chain. */
  readonly arrival: TransferArrival;
  /** The app's share of the source amount, in hundredths of a percent. */
  readonly appFeeBps: number;
  /** Whether it arrives as another asset or on another chain. */
  readonly isExchange: boolean;
}

/**
 * Reads the body of a transfer or of a transfer quote.
 *
 * @throws RequestTermsError invalid_data naming the field; not_supported for a chain that the wallet is not on and for
 * an asset that is not on it.
 */
export function readTransferTerms(
  chainType: string,
  body: TransferRequest | QuoteWalletTransferRequest,
): TransferTerms {
  const chain = requireChainAt('/source/chain', body.source.chain);
  if (chain.chainType !== chainType) {
    throw notSupported('/source/chain', `\`${chain.name}\` is not a chain of ${chainType} wallets`);
  }
  const source = readSource(chain, body.source);
  const { isExchange, ...arrival } = readArrival(source, body.destination);
  const destination = readChainAddress(arrival.chain.chainType, body.destination.address);
  if (destination === undefined) {
    throw invalid('/destination/address', `expected an address on \`${arrival.chain.name}\``);
  }
  const amountType = body.amount_type ?? 'exact_input';
  const appFeeBps = body.fee_configuration?.value ?? 0;
  return { source, ...readAmount(body), amountType, destination, arrival, appFeeBps, isExchange };
}

function readSource(chain: KnownChain, source: TransferRequest['source']): TransferSource {
  // INVARIANT: one of them. Policies see the body, and would judge the address while the name is what is moved. The
  // signer reads bodies that no server has validated.
  if ('asset' in source && 'asset_address' in source) {
    throw invalid('/source', 'expected `asset` or `asset_address`, not both');
  }
  if ('asset' in source) return requireAssetAt('/source/asset', chain, source.asset);
  const tokenAddress = readChainAddress(chain.chainType, source.asset_address);
  if (tokenAddress === undefined) {
    throw invalid('/source/asset_address', `expected the address of a token on \`${chain.name}\``);
  }
  return assetAtAddress(chain, tokenAddress) ?? { chain, tokenAddress };
}

function readArrival(
  source: TransferSource,
  destination: TransferRequest['destination'],
): TransferArrival & { isExchange: boolean } {
  const chain =
    destination.chain === undefined ? source.chain : requireChainAt('/destination/chain', destination.chain);
  const isElsewhere = chain !== source.chain;
  if (destination.asset === undefined) {
    const asset = 'asset' in source ? assetNamed(chain, source.asset) : undefined;
    return { chain, asset, isExchange: isElsewhere };
  }
  const asset = requireAssetAt('/destination/asset', chain, destination.asset);
  return { chain, asset, isExchange: isElsewhere || asset !== source };
}

function readAmount(body: TransferRequest | QuoteWalletTransferRequest) {
  const { amount: inSource } = body.source;
  if (inSource !== undefined && body.amount !== undefined) {
    throw invalid('/amount', 'expected `amount` here or in `source`, not both');
  }
  const pointer = inSource === undefined ? '/amount' : '/source/amount';
  const amountText = inSource ?? body.amount;
  if (amountText === undefined) throw invalid('/amount', 'expected `amount` here or in `source`');
  const amount = readDecimal(amountText);
  if (amount === undefined || amount.digits === 0n) {
    throw invalid(pointer, 'expected a decimal number above 0');
  }
  return { amount, amountText, amountPointer: pointer };
}

function requireChainAt(pointer: string, name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain === undefined) throw notSupported(pointer, `the chain \`${name}\` is not supported`);
  return chain;
}

function requireAssetAt(pointer: string, chain: KnownChain, name: string): KnownAsset {
  const asset = assetNamed(chain, name);
  if (asset === undefined) throw notSupported(pointer, `no asset \`${name}\` is known on \`${chain.name}\``);
  return asset;
}

/**
 * The action that policies evaluate: the body, with omitted fields and alternative spellings all filled in, so that
 * no rule is bypassed by spelling the same transfer differently.
 *
 * CHOICE: the amount appears as `amount` and `source.amount`, the source by name and by address, and the
 * destination's chain and asset default to the source's. For an exchange with a fixed arriving amount, the amount is
 * what is spent, because that is what rules on amounts limit.
 *
 * @param spent in units of the source asset, once the exchange has quoted it.
 * @throws RequestTermsError not_supported for such an exchange without a quote.
 */
export function transferAction(body: TransferRequest, terms: TransferTerms, spent?: Decimal): PolicyAction {
  const { source } = terms;
  const amountText = fixesArrival(terms) ? textOf(spent) : terms.amountText;
  const asset = 'asset' in source ? source.asset : undefined;
  const requestBody = {
    ...body,
    amount: amountText,
    source: {
      ...(asset === undefined ? {} : { asset }),
      ...(source.tokenAddress === null ? {} : { asset_address: source.tokenAddress }),
      // Addresses as sent: the condition compares exact text.
      ...body.source,
      amount: amountText,
    },
    destination: {
      chain: source.chain.name,
      ...(asset === undefined ? {} : { asset }),
      ...body.destination,
    },
  };
  return { method: 'transfer', units: [{ label: 'transfer', requestBody }] };
}

/** Whether the amount fixes what an exchange delivers, so that the amount spent comes from its quote. */
export function fixesArrival({ isExchange, amountType }: TransferTerms): boolean {
  return isExchange && amountType === 'exact_output';
}

function textOf(spent: Decimal | undefined): string {
  if (spent === undefined) {
    throw notSupported('/amount_type', 'what an exchange costs is known once it is asked, and judged then');
  }
  return decimalText(spent);
}
