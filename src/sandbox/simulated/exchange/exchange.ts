import assert from 'node:assert/strict';
import type { Prices } from '../../../ports/chains.ts';
import type {
  Exchange,
  ExchangeAsset,
  ExchangeOrder,
  ExchangeQuote,
  ExchangeRefusal,
  ExchangeStatus,
} from '../../../ports/exchange.ts';
import type { Clock, Ids } from '../../../ports/runtime.ts';
import { RevertError, rollBack } from '../chains/ledger.ts';
import type { ChainStore } from '../chains/store.ts';
import { type Deposit, type Funded, InvalidDepositError, type Simulated } from '../chains/world.ts';
import {
  closeOrder,
  findDeposit,
  findOrder,
  type IncludedDeposit,
  insertOrder,
  type OrderRow,
  outcomeOf,
} from './orders.ts';
import { exceedsInput, type Rate, rateOfInput, rateOfOutput, rawAmountWorth, type Side } from './rates.ts';
import { ensureInventory, INVENTORY_USD, isUnpayable, solverOn, toLedger } from './solver.ts';

/*
 * SIMULATED exchange: the exchange quotes by the simulated prices and pays from its own stock on simulated chains.
 * PRODUCTION: no exchange is connected: 400 `not_supported`. SETTING: none.
 */

/** CHOICE: how long a quote is valid. A deposit that is included later is refunded. */
const QUOTE_SECONDS = 600;

/** The components that the exchange uses. */
export interface ExchangeParts {
  readonly clock: Clock;
  readonly ids: Pick<Ids, 'uuid'>;
  readonly prices: Prices;
  readonly store: ChainStore;
  /** Returns a chain once it has processed all due blocks, or undefined if the chain is not simulated. */
  chain(caip2: string): Promise<Simulated | undefined>;
}

/** One side of an order: its asset, its chain and the solver's account there. */
interface OrderSide extends ExchangeAsset, Side {
  readonly address: string;
  readonly chain: Simulated;
  readonly solver: string;
}

/**
 * Simulates an exchange whose solver has an account on every chain. The solver receives deposits there, and pays from
 * its inventory at fixed prices minus its fee. `statusOf` looks for the deposit. Once the source chain has a later
 * block than the deposit's, `statusOf` pays, in the latest block of the destination chain. Orders are stored together
 * with the chains, so that a payment and its record are one transaction.
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
  const source = await sideOf(parts, order.source);
  const destination = await sideOf(parts, order.destination);
  if (source === undefined || destination === undefined) {
    return { fault: 'pair', message: 'the exchange does not support this pair' };
  }
  if (exceedsInput(order.appFeeBps)) {
    return { fault: 'fee', message: 'expected fees below the input, including the fee of the exchange' };
  }
  const terms = { source, destination, appFeeBps: order.appFeeBps };
  const rate =
    order.amountType === 'exact_input'
      ? rateOfInput(terms, order.rawAmount)
      : rateOfOutput(terms, order.rawAmount);
  if (rate === undefined) return { fault: 'amount', message: 'the amount is too small for any output' };
  const supplies = await suppliesOf(parts, [source, destination]);
  return parts.store.atomically(() => {
    const isStocked = supplies.every(({ chain, ...supply }) => ensureInventory(parts.store, chain, supply));
    if (!isStocked || !canPay(parts, destination, rate.rawOutput)) {
      return { fault: 'amount', message: 'the amount exceeds what the exchange can pay' };
    }
    return open(parts, { source, destination, rate });
  });
}

/**
 * Returns one side of an order. Returns undefined if the solver has no account on the chain, if the chain is not
 * simulated, or if the asset has no price.
 */
async function sideOf(
  { chain: find, prices }: ExchangeParts,
  side: ExchangeOrder['source'],
): Promise<OrderSide | undefined> {
  const solver = solverOn(side.caip2);
  const chain = await find(side.caip2);
  const price = (await prices.inUsd([side.asset])).get(side.asset);
  if (solver === undefined || chain === undefined || price === undefined) return undefined;
  return { ...side, chain, solver, price };
}

/**
 * Returns the assets that the solver needs: those of both sides, and SOL on Solana for the token accounts that it
 * creates.
 */
async function suppliesOf({ prices }: ExchangeParts, sides: readonly OrderSide[]) {
  const sol = (await prices.inUsd(['sol'])).get('sol');
  const lamports = sides
    .filter(({ caip2 }) => caip2.startsWith('solana:'))
    .map((side) => ({ ...side, asset: 'sol', tokenAddress: null, decimals: 9, price: sol ?? '1' }));
  return [...sides, ...lamports].map(({ chain, caip2, tokenAddress, decimals, asset, price }) => ({
    ...{ chain, caip2, tokenAddress, decimals },
    symbol: asset.toUpperCase(),
    rawAmount: rawAmountWorth(INVENTORY_USD, { price, decimals }),
  }));
}

/** Returns whether the solver can pay now: makes the payment and rolls it back. */
function canPay({ store }: ExchangeParts, { chain, ...side }: OrderSide, rawAmount: bigint): boolean {
  return (
    rollBack(store, () => tryToPay(store, chain, { ...side, payer: side.solver, rawAmount })) !== undefined
  );
}

function open(
  { store, ids, clock }: ExchangeParts,
  { source, destination, rate }: { source: OrderSide; destination: OrderSide; rate: Rate },
): ExchangeQuote {
  const { rawInput, rawOutput, relayerFee, appFee } = rate;
  const id = ids.uuid();
  const expiresAtSeconds = Math.floor(clock.now() / 1000) + QUOTE_SECONDS;
  insertOrder(store, {
    id,
    source_caip2: source.caip2,
    source_token: source.tokenAddress,
    payer: toLedger(source.caip2, source.address),
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
  if (known === undefined) throw new Error(`expected the id of a quote, got \`${id}\``);
  const source = await parts.chain(known.source_caip2);
  const destination = await parts.chain(known.destination_caip2);
  assert(
    source !== undefined && destination !== undefined,
    'expected both chains of a quote to be simulated',
  );
  return store.atomically(() => {
    // Read the order again, because a concurrent call may have settled it.
    const order = findOrder(store, id) ?? known;
    const earlierOutcome = outcomeOf(order);
    if (earlierOutcome !== undefined) return earlierOutcome;
    const { number: height } = source.head();
    const asset = toLedger(order.source_caip2, order.source_token);
    const recipient = solverOn(order.source_caip2)!;
    const deposit = findDeposit(store, order, { hash: depositHash, recipient, asset });
    if (deposit === undefined || deposit.blockNumber >= height) return { kind: 'waiting' };
    const outcome = settle(order, { store, source, destination }, deposit);
    if (outcome === undefined) return { kind: 'waiting' };
    closeOrder(store, order, { depositHash, outcome });
    return outcome;
  });
}

/** Pays the recipient or refunds the deposit. Returns undefined if the solver's balance is too low for either. */
function settle(
  order: OrderRow,
  { store, source, destination }: { store: ChainStore; source: Simulated; destination: Simulated },
  deposit: IncludedDeposit,
): Exclude<ExchangeStatus, { kind: 'waiting' }> | undefined {
  const refusal = refusalOf(order, deposit);
  if (refusal === undefined) {
    const paid = tryToPay(store, destination, {
      address: order.recipient,
      payer: solverOn(order.destination_caip2)!,
      tokenAddress: order.destination_token,
      rawAmount: BigInt(order.raw_output),
    });
    if (paid !== undefined) return { kind: 'paid', hash: paid.hash };
  }
  const refunded = tryToPay(store, source, {
    address: order.payer,
    payer: solverOn(order.source_caip2)!,
    tokenAddress: order.source_token,
    rawAmount: deposit.rawAmount,
  });
  const reason = refusal ?? 'the exchange could not pay the recipient';
  return refunded && { kind: 'refunded', hash: refunded.hash, reason };
}

/** Returns the reason why a deposit is refunded, or undefined if it is exchanged. */
function refusalOf(order: OrderRow, { rawAmount, blockSeconds }: IncludedDeposit): string | undefined {
  if (blockSeconds > order.expires_seconds) return 'the deposit was included after the quote had expired';
  if (rawAmount !== BigInt(order.raw_input)) return 'the deposit differs from the quoted amount';
  if (isUnpayable(order.destination_caip2, order.recipient)) return 'the payment to the recipient reverts';
  return undefined;
}

/** Pays atomically. Returns undefined if the payment fails. */
function tryToPay(store: ChainStore, chain: Simulated, deposit: Deposit): Funded | undefined {
  try {
    return store.atomically(() => chain.fund(deposit));
  } catch (error) {
    if (error instanceof RevertError || error instanceof InvalidDepositError) return undefined;
    throw error;
  }
}
