import type { ExecuteWalletSwapRequest, QuoteWalletSwapRequest } from '../../generated/schemas.ts';
import { readChainAddress } from '../assets/addresses.ts';
import { decimalText, fromRaw } from '../assets/decimal.ts';
import { assetAtAddress, type KnownAsset } from '../assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../assets/known-chains.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid, notSupported } from './request-terms-error.ts';

export type SwapBody = QuoteWalletSwapRequest | ExecuteWalletSwapRequest;

interface SwapSide {
  readonly chain: KnownChain;
  /** The token's address in the notation of the chain type; null for the native asset. */
  readonly tokenAddress: string | null;
  /** Undefined for a token that has no name in the API. */
  readonly asset: KnownAsset | undefined;
}

/** The terms of a requested swap, after every check that needs no chain call. */
export interface SwapTerms {
  readonly source: SwapSide;
  readonly destination: SwapSide;
  /** The recipient of the proceeds, in the notation of the destination's chain type; null for the wallet itself. */
  readonly recipient: string | null;
  /** The amount in base units of the asset on the side that `amountType` fixes, above 0. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly slippageBps: number;
  /** The app's share of the source amount, in hundredths of a percent. */
  readonly appFeeBps: number;
}

/** CHOICE: half a percent if the request gives no slippage. */
const DEFAULT_SLIPPAGE_BPS = 50;
const MAX_UINT256 = 2n ** 256n - 1n;
/** Addresses that are not tokens: the zero address, and the address that other interfaces use for the native asset. */
const notTokens: ReadonlySet<string> = new Set([`0x${'0'.repeat(40)}`, `0x${'e'.repeat(40)}`]);

/**
 * Reads the body of a swap or of a swap quote.
 *
 * @throws RequestTermsError invalid_data, which names the field; not_supported for an unknown chain, a chain of
 * another wallet type, a chain without a native asset, and two assets that cannot be swapped.
 */
export function readSwapTerms(chainType: string, body: SwapBody): SwapTerms {
  const chain = requireChainAt('/source/caip2', body.source.caip2);
  if (chain.chainType !== chainType) {
    throw notSupported('/source/caip2', `\`${chain.caip2}\` is not a chain of ${chainType} wallets`);
  }
  const destinationChain =
    body.destination.caip2 === undefined
      ? chain
      : requireChainAt('/destination/caip2', body.destination.caip2);
  const source = readSide('/source', chain, body.source.asset_address);
  const destination = readSide('/destination', destinationChain, body.destination.asset_address);
  requireDifferent(source, destination);
  const rawAmount = BigInt(body.base_amount);
  if (rawAmount === 0n || rawAmount > MAX_UINT256) {
    throw invalid('/base_amount', 'expected an integer from 1 to 2^256 - 1');
  }
  return {
    source,
    destination,
    recipient: readRecipient(chainType, destinationChain, body.destination.destination_address),
    rawAmount,
    amountType: body.amount_type ?? 'exact_input',
    slippageBps: body.slippage_bps ?? DEFAULT_SLIPPAGE_BPS,
    appFeeBps: body.fee_configuration?.value ?? 0,
  };
}

function readSide(pointer: '/source' | '/destination', chain: KnownChain, address: string): SwapSide {
  if (address === 'native') {
    const { native } = chain;
    if (native === undefined) {
      throw notSupported(`${pointer}/caip2`, `\`${chain.caip2}\` has no native asset`);
    }
    return { chain, tokenAddress: null, asset: { ...native, chain, tokenAddress: null } };
  }
  const tokenAddress = readChainAddress(chain.chainType, address);
  if (tokenAddress === undefined || notTokens.has(tokenAddress.toLowerCase())) {
    throw invalid(`${pointer}/asset_address`, 'expected the address of a token or `native`');
  }
  return { chain, tokenAddress, asset: assetAtAddress(chain, tokenAddress) };
}

function requireDifferent(source: SwapSide, destination: SwapSide): void {
  if (source.chain === destination.chain && source.tokenAddress === destination.tokenAddress) {
    throw notSupported('/destination', "expected an asset or a chain other than the source's");
  }
  if (source.chain.isTestnet !== destination.chain.isTestnet) {
    throw notSupported('/destination', 'nothing is exchanged between a test network and a main network');
  }
}

/**
 * Reads the recipient of the proceeds; null means the wallet itself.
 *
 * CHOICE: quotes also need the address if the destination has another chain type, because an exchange quotes for a
 * recipient.
 */
function readRecipient(
  ofWallet: string,
  { chainType, name }: KnownChain,
  given: string | undefined,
): string | null {
  if (given === undefined && chainType === ofWallet) return null;
  const recipient = given === undefined ? undefined : readChainAddress(chainType, given);
  if (recipient === undefined) {
    throw invalid('/destination/destination_address', `expected an address on \`${name}\``);
  }
  return recipient;
}

function requireChainAt(pointer: string, caip2: string): KnownChain {
  const chain = chainOfCaip2(caip2);
  if (chain === undefined) throw notSupported(pointer, `the chain \`${caip2}\` is not supported`);
  return chain;
}

/**
 * Returns whether the amount to spend is known without a call of the chain: the request fixes it, in an asset whose
 * decimals are known.
 */
export function isSpentKnown({ amountType, source }: SwapTerms): boolean {
  return amountType === 'exact_input' && source.asset !== undefined;
}

/** What a swap may spend, and who receives its proceeds. */
interface SwapSpending {
  /** The maximum to spend, in base units of the source asset. */
  readonly rawAmount: bigint;
  /** The decimals of the source asset. */
  readonly decimals: number;
  readonly recipient: string;
}

/**
 * Returns the action that policies evaluate: the body, with all omitted fields and alternative spellings filled in, as
 * for transfers. No rule method matches swaps, so only rules for `*` see the action.
 *
 * CHOICE: the amounts are the maximum that the swap may spend, even if the request fixes the amount that arrives,
 * because rules on amounts limit spending. Assets and addresses are shown as sent, because conditions compare exact
 * text.
 */
export function swapAction(
  body: SwapBody,
  { source, destination, slippageBps, amountType }: SwapTerms,
  spent: SwapSpending,
): PolicyAction {
  const amount = decimalText(fromRaw(spent.rawAmount, spent.decimals));
  const rawAmount = String(spent.rawAmount);
  const { destination_address: address = spent.recipient, ...arriving } = body.destination;
  const requestBody = {
    ...body,
    amount,
    ...{ raw_amount: rawAmount, base_amount: rawAmount },
    amount_type: amountType,
    slippage_bps: slippageBps,
    source: { ...namesOf(source), ...body.source, amount, raw_amount: rawAmount },
    destination: {
      ...namesOf(destination),
      caip2: destination.chain.caip2,
      ...arriving,
      ...{ address, destination_address: address },
    },
  };
  return { method: 'swap', units: [{ label: 'swap', requestBody }] };
}

function namesOf({ chain, asset }: SwapSide): object {
  return { ...(asset === undefined ? {} : { asset: asset.asset }), chain: chain.name };
}
