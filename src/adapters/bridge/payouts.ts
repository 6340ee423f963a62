import { fixedText, percentOf, readDecimal } from '../../engine/assets/decimal.ts';
import type {
  FiatPayout,
  FiatPayoutState,
  FiatProvider,
  FiatRefusal,
  OpenedPayout,
  PayoutOrder,
} from '../../ports/fiat.ts';
import {
  type BridgeClient,
  type BridgeObject,
  objectOf,
  refusal,
  requireFee,
  requireSame,
  requireText,
  requireValue,
  textOf,
  unusable,
  valueIfFound,
} from './client.ts';
import { routeOf } from './customers.ts';

/**
 * CHOICE: a deposit must be signed within this time after its transfer was opened. The service sets no such limit: it
 * also pays out later deposits.
 */
const PAYOUT_SECONDS = 1800;

/** Assets whose amounts are US dollars. For these, the service accepts fixed amounts as fees. */
const dollars: ReadonlySet<string> = new Set(['usdc', 'usdt', 'usdb', 'pyusd', 'dai']);

const CENTS = 2;

/** Returns the methods for payouts, which are the service's transfers from a wallet to a bank. */
export function bridgePayouts(
  client: BridgeClient,
): Pick<FiatProvider, 'openPayout' | 'cancelPayout' | 'payout'> {
  return {
    openPayout: (order) => open(client, order),
    async cancelPayout(id) {
      const answer = await client.delete(['transfers', id]);
      if ('value' in answer || answer.refusal.status === 404) return;
      // A transfer that has received its deposit can no longer be canceled.
      if (stateOf(requireValue(await client.get(['transfers', id]))) === 'awaiting_funds')
        requireValue(answer);
    },
    async payout(id) {
      const transfer = valueIfFound(await client.get(['transfers', id]));
      return transfer && readPayout(transfer, id);
    },
  };
}

async function open(client: BridgeClient, order: PayoutOrder): Promise<OpenedPayout | FiatRefusal> {
  const { key, customerId, bankAccountId, source, rawAmount, rail, currency } = order;
  const route = routeOf(source);
  if (route === undefined) {
    return { fault: 'pair', message: 'the provider does not pay out this asset of this chain' };
  }
  const fee = feeOf(order);
  if (fee !== '0.00' && !dollars.has(source.asset)) {
    const message = `the provider takes fees of the app in US dollars, not in \`${source.asset}\``;
    return { fault: 'pair', pointer: '/developer_fee_percent', message };
  }
  const body = {
    on_behalf_of: customerId,
    client_reference_id: key.slice(0, 64),
    amount: decimalOf(rawAmount, source.decimals),
    source: { ...route, from_address: source.address },
    destination: { payment_rail: rail, currency, external_account_id: bankAccountId },
    ...(fee === '0.00' ? {} : { developer_fee: fee }),
  };
  const answer = await client.post(['transfers'], body, key);
  if ('value' in answer) return readOpened(answer.value, order, { route, fee });
  const { members, code } = answer.refusal;
  if (members.some((member) => member.includes('external_account') || member === 'on_behalf_of')) {
    return refusal(answer.refusal, 'customer');
  }
  const isFee = members.some((member) => member.includes('developer_fee'));
  if (isFee) return refusal(answer.refusal, 'data', () => '/developer_fee_percent');
  const isAmount = code.includes('amount') || members.some((member) => member.includes('amount'));
  return refusal(answer.refusal, isAmount ? 'data' : 'pair');
}

/**
 * Returns the app's fee in US dollars, because the service accepts percentages only for amounts that are not fixed.
 *
 * CHOICE: the fee is rounded down to the cent, the smallest unit that the service accepts.
 */
function feeOf({ rawAmount, source, developerFeePercent }: PayoutOrder): string {
  const percent = readDecimal(developerFeePercent);
  if (percent === undefined) throw new Error('the fee of an app is not a decimal number');
  const rawFee = percentOf(rawAmount, percent);
  return fixedText({ digits: rawFee / 10n ** BigInt(source.decimals - CENTS), scale: CENTS });
}

function readOpened(
  transfer: BridgeObject,
  { customerId, source }: PayoutOrder,
  { route, fee }: { route: NonNullable<ReturnType<typeof routeOf>>; fee: string },
): OpenedPayout {
  requireSame(transfer, 'on_behalf_of', customerId);
  requireFee(transfer, 'developer_fee', fee);
  const said = objectOf(transfer, 'source_deposit_instructions');
  // The deposit is sent to the address in the response, so the response must be about the same asset on the same
  // chain.
  requireSame(said, 'payment_rail', route.payment_rail);
  requireSame(said, 'currency', route.currency);
  const openedMs = Date.parse(requireText(transfer, 'created_at'));
  const rawAmount = rawOf(requireText(said, 'amount'), source.decimals);
  if (Number.isNaN(openedMs) || rawAmount === undefined) throw unusable('expected the terms of a deposit');
  return {
    id: requireText(transfer, 'id'),
    depositAddress: requireText(said, 'to_address'),
    rawAmount,
    expiresAtSeconds: Math.floor(openedMs / 1000) + PAYOUT_SECONDS,
  };
}

const states: Readonly<Record<string, FiatPayoutState>> = {
  awaiting_funds: 'awaiting_funds',
  in_review: 'in_review',
  funds_received: 'funds_received',
  payment_submitted: 'payment_submitted',
  payment_processed: 'payment_processed',
  undeliverable: 'undeliverable',
  returned: 'returned',
  missing_return_policy: 'missing_return_policy',
  // The deposit is being refunded, or the service has to try the refund again.
  refund_in_flight: 'returned',
  refund_failed: 'returned',
  refunded: 'refunded',
  canceled: 'canceled',
  error: 'error',
};

function stateOf(transfer: BridgeObject): FiatPayoutState {
  const said = requireText(transfer, 'state');
  const state = Object.hasOwn(states, said) ? states[said] : undefined;
  if (state === undefined) throw unusable('expected a known state of a transfer');
  return state;
}

function readPayout(transfer: BridgeObject, id: string): FiatPayout {
  requireSame(transfer, 'id', id);
  const state = stateOf(transfer);
  const receipt = objectOf(transfer, 'receipt');
  return {
    id,
    state,
    paidAmount: state === 'payment_processed' ? textOf(receipt, 'final_amount') : undefined,
  };
}

/** Formats an amount: `1500000` with 6 decimals is `1.5`. */
function decimalOf(rawAmount: bigint, decimals: number): string {
  const digits = String(rawAmount).padStart(decimals + 1, '0');
  const fraction = digits.slice(digits.length - decimals).replace(/(?<!0)0+$/, '');
  return `${digits.slice(0, digits.length - decimals)}.${fraction === '' ? '0' : fraction}`;
}

/** Parses a decimal number. Returns undefined for other text, and for more decimals than the asset has. */
function rawOf(text: string, decimals: number): bigint | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,60})(?:\.(\d{1,60}))?$/.exec(text) ?? [];
  const kept = fraction.replace(/(?<!0)0+$/, '');
  if (whole === '' || kept.length > decimals) return undefined;
  return BigInt(whole + kept.padEnd(decimals, '0'));
}
