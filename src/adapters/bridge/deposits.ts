import type {
  FiatDepositInstructions,
  FiatDepositPage,
  FiatDepositReport,
  FiatDepositState,
  FiatProvider,
  FiatRefusal,
  VirtualAccount,
  VirtualAccountOrder,
} from '../../ports/fiat.ts';
import type { Clock } from '../../ports/runtime.ts';
import {
  type BridgeClient,
  type BridgeObject,
  objectOf,
  objectsOf,
  plainDecimal,
  refusal,
  requireFee,
  requireSame,
  requireText,
  requireValue,
  textOf,
  textsOf,
  unusable,
  valueIfFound,
} from './client.ts';
import { routeOf } from './customers.ts';

/** The maximum number of events in a response of the service. */
const PAGE = 100;
/**
 * CHOICE: the maximum number of pages to go back when a history is read for the first time. Older deposits were made
 * before the server's first account existed.
 */
const MAX_PAGES_BACK = 50;
/** CHOICE: the polling interval while the history has no new events. A notification triggers an earlier poll. */
const QUIET_MS = 5_000;

/** The history of all virtual accounts. */
interface BridgeDeposits extends Pick<FiatProvider, 'depositsAfter'> {
  /** Reads the history at the next poll, because it probably has new events. */
  expectNews(): void;
}

/**
 * Returns the methods that read the deposits of all virtual accounts.
 *
 * @param clock the system clock.
 */
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
      // Before `payment_processed`, the hash may still change.
      transactionHash: state === 'delivered' ? textOf(event, 'destination_tx_hash') : undefined,
      ...(state === 'refunded'
        ? { reason: textOf(refund, 'reason'), reasonCode: textOf(refund, 'code') }
        : {}),
      atMs,
    },
  ];
}

type VirtualAccounts = Pick<FiatProvider, 'openVirtualAccount' | 'virtualAccount' | 'closeVirtualAccount'>;

/** Returns the methods for the bank accounts whose deposits the service sends to wallets. */
export function bridgeVirtualAccounts(client: BridgeClient): VirtualAccounts {
  const find = async (customerId: string, id: string): Promise<VirtualAccount | undefined> => {
    const found = valueIfFound(await client.get(pathOf(customerId, id)));
    return found && readVirtualAccount(found, customerId, id);
  };
  return {
    openVirtualAccount: (order) => open(client, order),
    virtualAccount: find,
    async closeVirtualAccount(customerId, id) {
      const path = [...pathOf(customerId, id), 'deactivate'];
      const answer = await client.post(path, {}, `deactivate ${customerId} ${id}`);
      if ('value' in answer || answer.refusal.status === 404) return;
      // The account may have been closed before.
      if ((await find(customerId, id))?.status === 'activated') requireValue(answer);
    },
  };
}

function pathOf(customerId: string, id: string): readonly string[] {
  return ['customers', customerId, 'virtual_accounts', id];
}

async function open(client: BridgeClient, order: VirtualAccountOrder): Promise<VirtualAccount | FiatRefusal> {
  const { key, customerId, currency, destination } = order;
  const fee = plainDecimal(order.developerFeePercent);
  const route = routeOf(destination);
  if (route === undefined) {
    return { fault: 'pair', message: 'the provider does not deliver this asset on this chain' };
  }
  const body = {
    source: { currency },
    destination: { ...route, address: destination.address },
    ...(fee === '0' ? {} : { developer_fee_percent: fee }),
  };
  const answer = await client.post(['customers', customerId, 'virtual_accounts'], body, key);
  if ('value' in answer) return readOpened(answer.value, order);
  if (answer.refusal.status === 404) return refusal(answer.refusal, 'customer');
  const isFee = answer.refusal.members.includes('developer_fee_percent');
  if (isFee) return refusal(answer.refusal, 'data', () => '/developer_fee_percent');
  // For a known customer, the service refuses only the pair of currency and asset.
  return refusal(answer.refusal, 'pair');
}

/**
 * Reads the account that was opened for an order.
 *
 * INVARIANT: a customer never receives instructions for an account whose deposits go to another address, or have
 * another fee.
 */
function readOpened(account: BridgeObject, order: VirtualAccountOrder): VirtualAccount {
  const { customerId, developerFeePercent } = order;
  const { address } = order.destination;
  requireFee(account, 'developer_fee_percent', developerFeePercent);
  const said = textOf(objectOf(account, 'destination'), 'address');
  const isSame =
    said?.startsWith('0x') === true ? said.toLowerCase() === address.toLowerCase() : said === address;
  if (!isSame) throw unusable('its account delivers to another address');
  return readVirtualAccount(account, customerId, requireText(account, 'id'));
}

function readVirtualAccount(account: BridgeObject, customerId: string, id: string): VirtualAccount {
  requireSame(account, 'id', id);
  // The response to an opening has no customer id.
  if (account.customer_id !== undefined) requireSame(account, 'customer_id', customerId);
  const status = requireText(account, 'status');
  if (status !== 'activated' && status !== 'deactivated') throw unusable('expected the status of an account');
  const said = objectOf(account, 'source_deposit_instructions');
  const instructions = instructionsOf(said);
  return {
    ...{ id, status, currency: requireText(said, 'currency') },
    paymentRails: railsOf(said),
    instructions:
      Object.keys(instructions).length === 0 ? null : { ...instructions, payment_rails: railsOf(said) },
  };
}

function railsOf(said: BridgeObject): string[] {
  const rails = textsOf(said, 'payment_rails');
  const only = textOf(said, 'payment_rail');
  return rails.length > 0 || only === undefined ? [...rails] : [only];
}

const names = [
  ...['bank_name', 'bank_address', 'bank_routing_number', 'bank_account_number', 'bank_beneficiary_name'],
  ...['bank_beneficiary_address', 'iban', 'bic', 'account_holder_name', 'account_number', 'sort_code'],
  ...['clabe', 'br_code', 'bre_b_key', 'deposit_message'],
] as const satisfies readonly (keyof FiatDepositInstructions)[];

function instructionsOf(said: BridgeObject): FiatDepositInstructions {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = textOf(said, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
