import type { FiatDepositPage, FiatDepositReport, FiatDepositState, FiatProvider } from '../../ports/fiat.ts';
import type { Clock } from '../../ports/runtime.ts';
import { objectOf, objectsOf, requireText, requireValue, textOf, unusable } from './answers.ts';
import type { BridgeClient, BridgeObject } from './client.ts';

/** The maximum number of events that the service returns. */
const PAGE = 100;
/**
 * CHOICE: the maximum number of pages that the first reading of a history goes back. Older deposits are from before
 * the server's first account.
 */
const MAX_PAGES_BACK = 50;
/** CHOICE: the polling interval of a history without new events, unless a notification announces some. */
const QUIET_MS = 5_000;

/** The history of all virtual accounts. */
export interface BridgeDeposits extends Pick<FiatProvider, 'depositsAfter'> {
  /** Called when there are probably new events. */
  expectNews(): void;
}

/** @param clock the system clock. */
export function bridgeDeposits(client: BridgeClient, clock: Clock): BridgeDeposits {
  let quiet: { readonly cursor: string | undefined; readonly sinceMs: number } | undefined;
  return {
    expectNews() {
      quiet = undefined;
    },
    async depositsAfter(cursor) {
      const nowMs = clock.now();
      const isQuiet = quiet !== undefined && quiet.cursor === cursor && nowMs - quiet.sinceMs < QUIET_MS;
      if (isQuiet) return { reports: [], cursor, hasMore: false };
      const page = await (cursor === undefined ? firstPage(client) : pageAfter(client, cursor));
      quiet = page.hasMore ? undefined : { cursor: page.cursor, sinceMs: nowMs };
      return page;
    },
  };
}

/**
 * Returns the events right after an event, oldest first.
 *
 * NOTE: the service's timeline runs from the newest event to the oldest, so its parameter for newer events is
 * "before".
 */
async function pageAfter(client: BridgeClient, cursor: string): Promise<FiatDepositPage> {
  const events = await eventsOf(client, { ending_before: cursor });
  return pageOf(events, cursor);
}

/** Returns the oldest events, which are at the end of the timeline. */
async function firstPage(client: BridgeClient): Promise<FiatDepositPage> {
  let events = await eventsOf(client, {});
  let hasNewer = false;
  for (let pages = 1; events.length === PAGE && pages < MAX_PAGES_BACK; pages += 1) {
    const older = await eventsOf(client, { starting_after: requireText(events.at(-1)!, 'id') });
    if (older.length === 0) break;
    events = older;
    hasNewer = true;
  }
  const page = pageOf(events, undefined);
  return { ...page, hasMore: hasNewer };
}

async function eventsOf(
  client: BridgeClient,
  position: { readonly starting_after?: string; readonly ending_before?: string },
): Promise<readonly BridgeObject[]> {
  const path = ['virtual_accounts', 'history'];
  const answer = requireValue(await client.get(path, { limit: String(PAGE), ...position }));
  if (!Array.isArray(answer.data)) throw unusable('expected `data` in its answer');
  // NOTE: in the service's example of this list, each event is wrapped in `value`. In the example of one account's
  // list, it is not.
  return objectsOf(answer, 'data').map((item) => (item.id === undefined ? objectOf(item, 'value') : item));
}

function pageOf(events: readonly BridgeObject[], cursor: string | undefined): FiatDepositPage {
  const newest = events[0];
  return {
    reports: events.toReversed().flatMap(reportOf),
    cursor: newest === undefined ? cursor : requireText(newest, 'id'),
    hasMore: events.length === PAGE,
  };
}

/** Other events, such as `funds_scheduled` and `microdeposit`, contain no information about a received deposit. */
const states: Readonly<Record<string, FiatDepositState>> = {
  funds_received: 'received',
  in_review: 'in_review',
  payment_submitted: 'delivering',
  payment_processed: 'delivered',
  refunded: 'refunded',
};

function reportOf(event: BridgeObject): readonly FiatDepositReport[] {
  const type = requireText(event, 'type');
  const state = Object.hasOwn(states, type) ? states[type] : undefined;
  const depositId = textOf(event, 'deposit_id');
  if (state === undefined || depositId === undefined) return [];
  const source = objectOf(event, 'source');
  const refund = objectOf(event, 'refund');
  const atMs = Date.parse(requireText(event, 'created_at'));
  if (Number.isNaN(atMs)) throw unusable('expected the time of an event');
  return [
    {
      depositId,
      virtualAccountId: requireText(event, 'virtual_account_id'),
      state,
      amount: requireText(event, 'amount'),
      currency: requireText(event, 'currency'),
      paymentRail: textOf(source, 'payment_rail'),
      senderName: textOf(source, 'sender_name') ?? textOf(source, 'originator_name'),
      // Before `payment_processed` the hash may still change.
      transactionHash: state === 'delivered' ? textOf(event, 'destination_tx_hash') : undefined,
      ...(state === 'refunded'
        ? { reason: textOf(refund, 'reason'), reasonCode: textOf(refund, 'code') }
        : {}),
      atMs,
    },
  ];
}
