import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '../../../../../engine/crypto/encoding.ts';
import { invalid, isRecord, type RpcConnection } from '../../rpc-calls.ts';
import { makeSubscriptions } from '../../rpc-subscriptions.ts';
import type { TransactionError } from '../failures.ts';
import type { SolanaParts } from '../parts.ts';
import { findReceipt, latestReceipt, mentionsBefore, type Position, receiptsAfter } from '../receipts.ts';
import { notifiedView, shapeOf } from './accounts.ts';
import {
  addressOf,
  type Commitment,
  commitmentOf,
  listOf,
  optionsOf,
  signatureOf,
  slotAt,
  withIntegers,
} from './params.ts';

/*
 * The subscriptions of one chain. Each stores the last transaction that its client was notified of, at the client's
 * commitment level.
 */

/** CHOICE: when the clock moves far, a subscriber receives only the latest 256 slots. */
const MOST_SLOTS = 256;
/** The maximum number of transactions that one push reads for a subscription to logs. */
const MOST_RECEIPTS = 200;
/** The object that a subscription observes. */
interface Subject {
  /** The JSON-RPC method of its notifications. */
  readonly method: string;
  /** Calls `tell` for each change. Returns whether the subscription has ended. */
  check(news: News, tell: (value: unknown, slot: number) => void): boolean;
  /** Starts again, after the whole content was replaced. */
  restart(): void;
}

/** The state of the chain at a push. */
interface News {
  readonly head: number;
  /** Changes when a transaction is received or included. */
  readonly transactions: string;
  readonly latest: Position;
}

type SubscriptionMethod = (connection: RpcConnection, params: readonly unknown[]) => unknown;

export interface Feed {
  readonly methods: Readonly<Record<string, SubscriptionMethod>>;
}

const START: Position = { block: -1, index: -1 };

/** @param inclusionOf returns the slot that includes a transaction, and its result. */
export function makeFeed(
  parts: SolanaParts,
  inclusionOf: (
    hash: string,
  ) => { readonly slot: number; readonly error: TransactionError | null } | undefined,
): Feed {
  const { world, caip2, state, pool, blocks } = parts;
  const place = { store: world.store, caip2 };
  const subscriptions = makeSubscriptions<number, Subject>(push, { caip2, log: world.log });
  let content = world.store.content();
  let lastId = 0;
  let seen = '';

  const lastReceived = (): number =>
    world.store.first<{ id: number }>(
      'select id from transactions where caip2 = ? order by id desc limit 1',
      caip2,
    )?.id ?? 0;

  function newsNow(): News {
    const latest = latestReceipt(place) ?? START;
    const transactions = [content, latest.block, latest.index, lastReceived()].join(' ');
    return { head: blocks.head().number, transactions, latest };
  }

  async function push(): Promise<void> {
    if (content !== world.store.content()) {
      content = world.store.content();
      for (const subject of subscriptions.contents()) subject.restart();
    }
    await blocks.catchUp();
    const news = newsNow();
    const now = `${news.head} ${news.transactions}`;
    if (now === seen) return;
    seen = now;
    await subscriptions.forEach((id, subject, connection) => {
      const tell = (value: unknown, slot: number): void => {
        const result = subject.method === 'slotNotification' ? value : { context: { slot }, value };
        const params = { result: withIntegers(result), subscription: id };
        connection.notify({ jsonrpc: '2.0', method: subject.method, params });
      };
      if (subject.check(news, tell)) subscriptions.remove(connection, id);
    });
  }

  function subscribe(connection: RpcConnection, subject: Subject): number {
    lastId += 1;
    subscriptions.add(connection, lastId, subject);
    // A subscription may have a notification immediately.
    seen = '';
    return lastId;
  }

  const unsubscribe: SubscriptionMethod = (connection, [id]) => {
    if (typeof id === 'number' && subscriptions.remove(connection, id)) return true;
    throw invalid('Invalid subscription id.');
  };

  function slotSubject(): Subject {
    let last = blocks.head().number;
    return {
      method: 'slotNotification',
      check({ head }, tell) {
        for (let slot = Math.max(last + 1, head - MOST_SLOTS + 1); slot <= head; slot += 1) {
          tell({ slot, parent: slot - 1, root: Math.max(0, slot - parts.finalityBlocks) }, slot);
        }
        last = Math.max(last, head);
        return false;
      },
      restart() {
        last = blocks.head().number;
      },
    };
  }

  function signatureSubject(hash: string, level: Commitment, isReceiptWanted: boolean): Subject {
    let checked = '';
    let slot: number | undefined;
    let isTold = !isReceiptWanted;
    return {
      method: 'signatureNotification',
      check({ head, transactions }, tell) {
        // A transaction that no block included is searched for again only after other transactions arrived.
        if (slot === undefined && checked === transactions) return false;
        checked = transactions;
        const found = inclusionOf(hash);
        slot = found?.slot;
        if (!isTold && (found !== undefined || pool.isKnown(hash))) {
          isTold = true;
          tell('receivedSignature', head);
        }
        if (found === undefined || found.slot > slotAt(parts, level)) return false;
        tell({ err: found.error }, found.slot);
        return true;
      },
      restart() {
        checked = '';
        slot = undefined;
      },
    };
  }

  function accountSubject(address: string, level: Commitment, shape: ReturnType<typeof shapeOf>): Subject {
    let position = latestReceipt(place) ?? START;
    const fingerprint = (): string => {
      const { lamports, owner, data } = state.account(address);
      return `${lamports} ${owner} ${bytesToHex(sha256(data))}`;
    };
    let last = fingerprint();
    return {
      method: 'accountNotification',
      check({ latest }, tell) {
        if (isAt(position, latest)) return false;
        const upTo = slotAt(parts, level);
        const [hash] = mentionsBefore(place, address, {
          ...{ before: { block: upTo + 1, index: -1 }, until: position, limit: 1 },
        });
        const receipt = hash === undefined ? undefined : findReceipt(place, hash);
        if (receipt === undefined) {
          if (latest.block <= upTo) position = latest;
          return false;
        }
        position = { block: receipt.block.number, index: receipt.index };
        const now = fingerprint();
        if (now === last) return false;
        last = now;
        tell(notifiedView(parts, state.account(address), shape), position.block);
        return false;
      },
      restart() {
        position = latestReceipt(place) ?? START;
        last = fingerprint();
      },
    };
  }

  function logsSubject(address: string | undefined, level: Commitment): Subject {
    let position = latestReceipt(place) ?? START;
    return {
      method: 'logsNotification',
      check({ latest }, tell) {
        if (isAt(position, latest)) return false;
        const page = { ...position, upTo: slotAt(parts, level), limit: MOST_RECEIPTS };
        const receipts = receiptsAfter(place, page);
        // The next push reads the rest, even if nothing changes until then.
        if (receipts.length === MOST_RECEIPTS) seen = '';
        for (const receipt of receipts) {
          position = { block: receipt.block.number, index: receipt.index };
          const { hash, error, logs, block } = receipt;
          if (address !== undefined && !isNamed(address, position)) continue;
          tell({ signature: hash, err: error, logs }, block.number);
        }
        return false;
      },
      restart() {
        position = latestReceipt(place) ?? START;
      },
    };
  }

  const isNamed = (address: string, { block, index }: Position): boolean =>
    mentionsBefore(place, address, {
      ...{ before: { block, index: index + 1 }, until: { block, index: index - 1 }, limit: 1 },
    }).length > 0;

  return {
    methods: {
      slotSubscribe: (connection) => subscribe(connection, slotSubject()),
      signatureSubscribe(connection, [hash, second]) {
        const options = optionsOf(second);
        const isReceiptWanted = options.enableReceivedNotification === true;
        const subject = signatureSubject(signatureOf(hash), commitmentOf(options), isReceiptWanted);
        return subscribe(connection, subject);
      },
      accountSubscribe(connection, [address, second]) {
        const options = optionsOf(second);
        const subject = accountSubject(addressOf(address), commitmentOf(options), shapeOf(options));
        return subscribe(connection, subject);
      },
      logsSubscribe(connection, [filter, second]) {
        const level = commitmentOf(optionsOf(second));
        return subscribe(connection, logsSubject(mentionedIn(filter), level));
      },
      ...{ slotUnsubscribe: unsubscribe, signatureUnsubscribe: unsubscribe },
      ...{ accountUnsubscribe: unsubscribe, logsUnsubscribe: unsubscribe },
    },
  };
}

function isAt(one: Position, other: Position): boolean {
  return one.block === other.block && one.index === other.index;
}

/** Returns the address that a filter of logs names. Undefined for all transactions. */
function mentionedIn(filter: unknown): string | undefined {
  if (filter === 'all' || filter === 'allWithVotes') return undefined;
  if (!isRecord(filter)) throw invalid('Invalid params: expected `all`, `allWithVotes` or `mentions`.');
  const mentions = listOf(filter.mentions, 1);
  if (mentions.length !== 1) throw invalid('Invalid Request: Only 1 address supported');
  return addressOf(mentions[0]);
}
