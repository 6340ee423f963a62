import type { TransferTerms } from '../../../engine/actions/transfer-terms.ts';
import { type Decimal, decimalText, fromRaw, toRaw } from '../../../engine/assets/decimal.ts';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { FeeLineItem } from '../../../generated/schemas.ts';
import type { Exchange, ExchangeOrder, ExchangeQuote, ExchangeRefusal } from '../../../ports/exchange.ts';
import type { PlanContext } from '../../../ports/operation-context.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';

/** An exchange quote with its assets. */
export interface PlannedExchange {
  readonly source: KnownAsset;
  readonly destination: KnownAsset;
  readonly quote: ExchangeQuote;
}

export interface ExchangeRequest {
  readonly source: KnownAsset;
  readonly destination: KnownAsset;
  /** The address that pays the deposit. */
  readonly payer: string;
  readonly recipient: string;
  /** The amount that `amountType` fixes: of the input or of the output, in base units. */
  readonly rawAmount: bigint;
  readonly amountType: 'exact_input' | 'exact_output';
  readonly appFeeBps: number;
  /** JSON pointer of the amount in the body. */
  readonly amountPointer: string;
}

/**
 * Gets the exchange's quote. Call it outside any database transaction.
 *
 * CHOICE: the exchange delivers exactly its quote or refunds the deposit, so no `slippage_bps` is exceeded.
 *
 * @throws ApiError not_supported when no exchange is configured or the pair is not traded; invalid_data for an amount
 * or fee that the exchange does not accept; transaction_broadcast_failure when the exchange cannot be reached.
 */
export async function quoteExchange(
  context: PlanContext,
  request: ExchangeRequest,
): Promise<PlannedExchange> {
  const exchange = requireExchange(context);
  const { source, destination, payer, recipient, rawAmount, amountType, appFeeBps } = request;
  const quote = await askExchange(exchange, {
    source: portAsset(source, payer),
    destination: portAsset(destination, recipient),
    ...{ rawAmount, amountType, appFeeBps },
  });
  if ('fault' in quote) throw refusalOf(quote, request);
  // INVARIANT: the amount that policies evaluate is the amount that is signed, whatever the exchange responds.
  const isKept = amountType === 'exact_input' ? quote.rawInput === rawAmount : quote.rawOutput >= rawAmount;
  if (!isKept) throw invalidField(request.amountPointer, 'the exchange does not accept exactly this amount');
  return { source, destination, quote };
}

/**
 * Gets the exchange's quote for a transfer.
 *
 * @throws what `quoteExchange` throws.
 */
export async function planExchange(
  context: PlanContext,
  wallet: WalletRow,
  terms: TransferTerms,
): Promise<PlannedExchange> {
  requireExchange(context);
  const { source, destination } = assetsOf(terms);
  const { amount, amountPointer, amountType, appFeeBps } = terms;
  const fixed = amountType === 'exact_input' ? source : destination;
  return quoteExchange(context, {
    ...{ source, destination, payer: wallet.address, recipient: terms.destination },
    rawAmount: requireRaw(fixed, amount, amountPointer),
    ...{ amountType, appFeeBps, amountPointer },
  });
}

function requireExchange({ exchange }: PlanContext): Exchange {
  if (exchange === undefined) {
    throw notSupported('/destination', 'no exchange is configured for other assets or chains');
  }
  return exchange;
}

/**
 * Converts an amount to base units of its asset.
 *
 * @throws ApiError invalid_data when it has more decimal places than the asset.
 */
export function requireRaw({ asset, decimals }: KnownAsset, amount: Decimal, pointer: string): bigint {
  const rawAmount = toRaw(amount, decimals);
  if (rawAmount === undefined) throw invalidField(pointer, `\`${asset}\` has ${decimals} decimals at most`);
  return rawAmount;
}

/** Returns the fees of a quote in wire form. */
export function feesOf({ source, quote }: PlannedExchange): FeeLineItem[] {
  return quote.fees.map(({ type, rawAmount }) => ({
    type,
    amount: decimalText(fromRaw(rawAmount, source.decimals)),
  }));
}

function assetsOf({ source, arrival }: TransferTerms): Pick<PlannedExchange, 'source' | 'destination'> {
  const { chain, asset: destination } = arrival;
  if (!('asset' in source)) {
    throw notSupported('/source/asset_address', 'only assets that have a name here are exchanged');
  }
  if (destination === undefined) {
    throw notSupported('/destination/asset', `no asset \`${source.asset}\` is known on \`${chain.name}\``);
  }
  if (chain.isTestnet !== source.chain.isTestnet) {
    throw notSupported(
      '/destination/chain',
      'nothing is exchanged between a test network and a main network',
    );
  }
  return { source, destination };
}

function portAsset({ chain, asset, tokenAddress, decimals }: KnownAsset, address: string) {
  return { caip2: chain.caip2, asset, tokenAddress, decimals, address };
}

async function askExchange(
  exchange: Exchange,
  order: ExchangeOrder,
): Promise<ExchangeQuote | ExchangeRefusal> {
  try {
    return await exchange.quote(order);
  } catch (cause) {
    throw new ApiError(
      'transaction_broadcast_failure',
      'the exchange could not be reached; nothing was signed or sent',
      { cause },
    );
  }
}

function refusalOf({ fault, message }: ExchangeRefusal, { amountPointer }: ExchangeRequest): ApiError {
  if (fault === 'pair') return notSupported('/destination', message);
  return invalidField(fault === 'amount' ? amountPointer : '/fee_configuration/value', message);
}

function notSupported(pointer: string, message: string): ApiError {
  return new ApiError('not_supported', `${pointer}: ${message}`);
}
