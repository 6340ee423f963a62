import assert from 'node:assert/strict';
import type { Clock } from '../../ports/clock.ts';
import type {
  Exchange,
  ExchangeAsset,
  ExchangeOrder,
  ExchangeQuote,
  ExchangeRefusal,
  ExchangeStatus,
} from '../../ports/exchange.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Prices } from '../../ports/prices.ts';
import { RevertError } from '../chains/ledger.ts';
import type { ChainStore } from '../chains/store.ts';
import { undone } from '../chains/undone.ts';
import { type Deposit, type Funded, InvalidDepositError, type Simulated } from '../chains/world.ts';
import {
  endOf,
  endOrder,
  findOrder,
  insertOrder,
  type OrderRow,
  type SeenDeposit,
  seeDeposit,
} from './orders.ts';
import { isAllFees, type Rate, rateOfInput, rateOfOutput, rawWorth, type Side } from './rates.ts';
import { inLedger, isUnpayable, STOCK_USD, solverOn, stockOnce } from './solver.ts';

/** CHOICE: how long a quote holds; a deposit that comes into a block later is given back. */
const QUOTE_SECONDS = 600;

/** What the exchange is made of. */
export interface ExchangeParts {
  readonly clock: Clock;
  readonly ids: Pick<Ids, 'uuid'>;
  readonly prices: Prices;
  readonly store: ChainStore;
  /** Undefined for chains that are not simulated. */
  chain(caip2: string): Promise<Simulated | undefined>;
}

/** A side of an order with the chain that it is on. */
interface Place extends ExchangeAsset, Side {
  readonly address: string;
  readonly chain: Simulated;
  readonly solver: string;
}

/**
 * An exchange whose solver has an account on every chain: it takes deposits there and pays out of what it holds, at the
 * fixed prices less its fee. Asked how an exchange stands, it looks for the deposit, and once the source chain has a
 * block behind it pays, in the newest block of the destination chain. Its books are kept with the chains, so what it
 * does and what it knows to have done are one transaction of their store.
 */
export function simulateExchange(parts: ExchangeParts): Exchange {
  return {
    quote: (order) => quoteOrder(parts, order),
    statusOf: (quoteId, depositHash) => settleOrder(parts, quoteId, depositHash),
  };
}

async function quoteOrder(
  parts: ExchangeParts,
  order: ExchangeOrder,
): Promise<ExchangeQuote | ExchangeRefusal> {
  const source = await placeOf(parts, order.source);
  const destination = await placeOf(parts, order.destination);
  if (source === undefined || destination === undefined) {
    return { fault: 'pair', message: 'nobody here exchanges this pair' };
  }
  if (isAllFees(order.appFeeBps)) {
    return { fault: 'fee', message: 'with the fee of the exchange it leaves nothing to deliver' };
  }
  const terms = { source, destination, appFeeBps: order.appFeeBps };
  const rate =
    order.amountType === 'exact_input'
      ? rateOfInput(terms, order.rawAmount)
      : rateOfOutput(terms, order.rawAmount);
  if (rate === undefined) return { fault: 'amount', message: 'too little to deliver anything' };
  const supplies = await suppliesOf(parts, [source, destination]);
  return parts.store.atomically(() => {
    for (const place of [source, destination]) place.chain.head();
    const isStocked = supplies.every(({ chain, ...supply }) => stockOnce(parts.store, chain, supply));
    if (!isStocked || !canPay(parts, destination, rate.rawOutput)) {
      return { fault: 'amount', message: 'more than the exchange can deliver' };
    }
    return open(parts, { source, destination, rate });
  });
}

/** Undefined where the solver has no account, the chain is a real one, or the asset has no price. */
async function placeOf(
  { chain: find, prices }: ExchangeParts,
  side: ExchangeOrder['source'],
): Promise<Place | undefined> {
  const solver = solverOn(side.caip2);
  const chain = await find(side.caip2);
  const price = (await prices.inUsd([side.asset])).get(side.asset);
  if (solver === undefined || chain === undefined || price === undefined) return undefined;
  return { ...side, chain, solver, price };
}

/** What the solver must have a stock of: both assets, and on Solana lamports, for the accounts that it opens. */
async function suppliesOf({ prices }: ExchangeParts, places: readonly Place[]) {
  const sol = (await prices.inUsd(['sol'])).get('sol');
  const lamports = places
    .filter(({ caip2 }) => caip2.startsWith('solana:'))
    .map((place) => ({ ...place, asset: 'sol', tokenAddress: null, decimals: 9, price: sol ?? '1' }));
  return [...places, ...lamports].map(({ chain, caip2, tokenAddress, decimals, asset, price }) => ({
    ...{ chain, caip2, tokenAddress, decimals },
    symbol: asset.toUpperCase(),
    rawAmount: rawWorth(STOCK_USD, { price, decimals }),
  }));
}

/** Whether the solver could pay now; nothing is kept of the trial. */
function canPay({ store }: ExchangeParts, { chain, ...place }: Place, rawAmount: bigint): boolean {
  return (
    undone(store, () => tryToGive(store, chain, { ...place, payer: place.solver, rawAmount })) !== undefined
  );
}

function open(
  { store, ids, clock }: ExchangeParts,
  { source, destination, rate }: { source: Place; destination: Place; rate: Rate },
): ExchangeQuote {
  const { rawInput, rawOutput, relayerFee, appFee } = rate;
  const id = ids.uuid();
  const expiresAtSeconds = Math.floor(clock.now() / 1000) + QUOTE_SECONDS;
  insertOrder(store, {
    id,
    source_caip2: source.caip2,
    source_token: source.tokenAddress,
    payer: inLedger(source.caip2, source.address),
    destination_caip2: destination.caip2,
    destination_token: destination.tokenAddress,
    recipient: destination.address,
    raw_input: String(rawInput),
    raw_output: String(rawOutput),
    expires_seconds: expiresAtSeconds,
  });
  const developer = appFee === 0n ? [] : [{ type: 'developer' as const, rawAmount: appFee }];
  return {
    ...{ id, rawInput, rawOutput, depositAddress: source.solver, expiresAtSeconds },
    fees: [{ type: 'relayer', rawAmount: relayerFee }, ...developer],
  };
}

async function settleOrder(parts: ExchangeParts, id: string, depositHash: string): Promise<ExchangeStatus> {
  const { store } = parts;
  const known = findOrder(store, id);
  if (known === undefined) throw new Error(`the exchange has no quote ${id}`);
  const source = await parts.chain(known.source_caip2);
  const destination = await parts.chain(known.destination_caip2);
  assert(source !== undefined && destination !== undefined, 'both chains of a quote are simulated');
  return store.atomically(() => {
    // Read again: whoever asked at the same time may have been first.
    const order = findOrder(store, id) ?? known;
    const before = endOf(order);
    if (before !== undefined) return before;
    const { number: height } = source.head();
    destination.head();
    const asset = inLedger(order.source_caip2, order.source_token);
    const recipient = solverOn(order.source_caip2)!;
    const deposit = seeDeposit(store, order, { hash: depositHash, recipient, asset });
    if (deposit === undefined || deposit.blockNumber >= height) return { kind: 'waiting' };
    const end = settle(order, { store, source, destination }, deposit);
    if (end === undefined) return { kind: 'waiting' };
    endOrder(store, order, { depositHash, end });
    return end;
  });
}

/** Pays, or gives back what was deposited; undefined when the solver has too little for either and must wait. */
function settle(
  order: OrderRow,
  { store, source, destination }: { store: ChainStore; source: Simulated; destination: Simulated },
  deposit: SeenDeposit,
): Exclude<ExchangeStatus, { kind: 'waiting' }> | undefined {
  const refusal = refusalOf(order, deposit);
  if (refusal === undefined) {
    const paid = tryToGive(store, destination, {
      address: order.recipient,
      payer: solverOn(order.destination_caip2)!,
      tokenAddress: order.destination_token,
      rawAmount: BigInt(order.raw_output),
    });
    if (paid !== undefined) return { kind: 'paid', hash: paid.hash };
  }
  const refunded = tryToGive(store, source, {
    address: order.payer,
    payer: solverOn(order.source_caip2)!,
    tokenAddress: order.source_token,
    rawAmount: deposit.rawAmount,
  });
  const reason = refusal ?? 'the exchange could not pay the recipient';
  return refunded && { kind: 'refunded', hash: refunded.hash, reason };
}

/** Why a deposit is not exchanged. */
function refusalOf(order: OrderRow, { rawAmount, blockSeconds }: SeenDeposit): string | undefined {
  if (blockSeconds > order.expires_seconds) return 'the deposit came after the quote had expired';
  if (rawAmount !== BigInt(order.raw_input)) return 'the deposit was not what was quoted';
  if (isUnpayable(order.destination_caip2, order.recipient)) return 'the payment to the recipient reverts';
  return undefined;
}

/** All of it or, when it cannot be given, nothing. */
function tryToGive(store: ChainStore, chain: Simulated, deposit: Deposit): Funded | undefined {
  try {
    return store.atomically(() => chain.give(deposit));
  } catch (error) {
    if (error instanceof RevertError || error instanceof InvalidDepositError) return undefined;
    throw error;
  }
}
