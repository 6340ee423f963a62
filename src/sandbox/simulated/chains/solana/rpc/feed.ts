import { sha256 } from '@noble/hashes/sha2.js';
import { base64ToBytes, bytesToHex } from '../../../../../engine/crypto/encoding.ts';
import { once } from '../../../../../engine/load-once.ts';
import { invalid, isRecord, type RpcConnection } from '../../rpc-calls.ts';
import { makeSubscriptions } from '../../rpc-subscriptions.ts';
import type { SolanaAccount } from '../accounts.ts';
import type { TransactionError } from '../failures.ts';
import type { SolanaParts } from '../parts.ts';
import { decodeSolana } from '../plan.ts';
import { latestReceipt, type Position, type Receipt, receiptsAfter } from '../receipts.ts';
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

/**
 * The subscriptions of one chain. Each push reads new transactions and the accounts that they name once, for all
 * subscriptions together. So the number of subscriptions matters little. Only changed accounts, and signatures that no
 * block has included yet, are read for each subscription.
 */

/** CHOICE: if the clock moves far, a subscriber receives only the latest 256 slots. */
const MAX_SLOTS = 256;
/** The maximum number of transactions that one push reads per commitment level. */
const MAX_RECEIPTS = 200;
/** The part of the chain that a subscription observes. */
interface Subject {
  /** The name of the JSON-RPC method of its notifications. */
  readonly method: string;
  /** The commitment level of the transactions that it observes. Undefined if it observes none. */
  readonly level?: Level;
  /** Calls `tell` for each change. Returns whether the subscription has ended. */
  check(news: News, tell: (value: unknown, slot: number) => void): boolean;
  /** Starts again after the whole content of the store was replaced. */
  restart(): void;
}

/** The state of the chain that a push has read. */
interface News {
  readonly head: number;
  /** Changes when a transaction is received or included. */
  readonly transactions: string;
  /** Returns the transactions that have reached this level since the last push. */
  reached(level: Level): Reached;
  /** Returns an account. It is read once for all subscriptions. */
  account(address: string): Fingerprinted;
}

/** CHOICE: a block is confirmed as soon as it is processed. */
type Level = 'confirmed' | 'finalized';

const levelOf = (level: Commitment): Level => (level === 'finalized' ? level : 'confirmed');

interface Reached {
  /** In order, each with the accounts that it names. */
  readonly transactions: readonly { readonly receipt: Receipt; readonly accounts: ReadonlySet<string> }[];
  /** For each of these accounts, the position of the last transaction that names it. */
  readonly positions: ReadonlyMap<string, Position>;
}

interface Fingerprinted {
  readonly account: SolanaAccount;
  /** Changes whenever the account changes. */
  readonly fingerprint: string;
}

type SubscriptionMethod = (connection: RpcConnection, params: readonly unknown[]) => unknown;

export interface Feed {
  readonly methods: Readonly<Record<string, SubscriptionMethod>>;
}

const START: Position = { block: -1, index: -1 };

/**
 * Creates the subscriptions of a chain.
 *
 * @param inclusionOf returns the slot that includes a transaction, and the transaction's result.
 */
export function makeFeed(
  parts: SolanaParts,
  inclusionOf: (
    hash: string,
  ) => { readonly slot: number; readonly error: TransactionError | null } | undefined,
): Feed {
  const { world, caip2, state, pool, blocks } = parts;
  const place = { store: world.store, caip2 };
  const subscriptions = makeSubscriptions<number, Subject>(push, { caip2, log: world.log });
  /** The position after which transactions are still to be read for the subscriptions, by level. */
  const cursors: Record<Level, Position> = { confirmed: START, finalized: START };
  let content = world.store.content();
  let lastId = 0;
  let seen = '';

  const lastReceived = (): number =>
    world.store.first<{ id: number }>(
      'select id from transactions where caip2 = ? order by id desc limit 1',
      caip2,
    )?.id ?? 0;

  function fingerprinted(address: string): Fingerprinted {
    const account = state.account(address);
    const { lamports, owner, data } = account;
    return { account, fingerprint: `${lamports} ${owner} ${bytesToHex(sha256(data))}` };
  }

  const latestAt = (level: Level): Position => latestReceipt(place, slotAt(parts, level)) ?? START;

  /** Reads the next transactions up to the newest slot of a level. */
  function reach(level: Level): Reached {
    const page = { ...cursors[level], upTo: slotAt(parts, level), limit: MAX_RECEIPTS };
    const transactions = receiptsAfter(place, page).map((receipt) => {
      const { keys } = decodeSolana(base64ToBytes(receipt.wire));
      const { writable, readonly } = receipt.loaded;
      return { receipt, accounts: new Set([...keys, ...writable, ...readonly]) };
    });
    const positions = new Map<string, Position>();
    for (const { receipt, accounts } of transactions) {
      cursors[level] = positionOf(receipt);
      for (const address of accounts) positions.set(address, cursors[level]);
    }
    // The next push reads the rest, even if nothing changes before it.
    if (transactions.length === MAX_RECEIPTS) seen = '';
    return { transactions, positions };
  }

  function newsNow(): News {
    const latest = latestReceipt(place, blocks.head().number) ?? START;
    const transactions = [content, latest.block, latest.index, lastReceived()].join(' ');
    const byLevel = { confirmed: once(() => reach('confirmed')), finalized: once(() => reach('finalized')) };
    const accounts = new Map<string, Fingerprinted>();
    return {
      ...{ head: blocks.head().number, transactions },
      reached: (level) => byLevel[level](),
      account(address) {
        const found = accounts.get(address) ?? fingerprinted(address);
        accounts.set(address, found);
        return found;
      },
    };
  }

  async function push(): Promise<void> {
    if (content !== world.store.content()) {
      content = world.store.content();
      cursors.confirmed = latestAt('confirmed');
      cursors.finalized = latestAt('finalized');
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
    const { level } = subject;
    const isFirst = level !== undefined && !subscriptions.contents().some((each) => each.level === level);
    // While this level had no subscriptions, its new transactions were not read. Skip them.
    if (isFirst) cursors[level] = latestAt(level);
    lastId += 1;
    subscriptions.add(connection, lastId, subject);
    // There may already be something to report to the new subscription.
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
        for (let slot = Math.max(last + 1, head - MAX_SLOTS + 1); slot <= head; slot += 1) {
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
        // A transaction that no block has included is looked up again only after other transactions have arrived.
        if (slot === undefined && checked === transactions) return false;
        checked = transactions;
        if (slot !== undefined && slot > slotAt(parts, level)) return false;
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

  function accountSubject(address: string, level: Level, shape: ReturnType<typeof shapeOf>): Subject {
    let position = latestAt(level);
    /**
     * Returns the fingerprint of the account. Undefined if it may have been changed by a transaction that has not
     * reached the level yet.
     */
    const current = (): string | undefined =>
      isAfter(latestAt('confirmed'), position) ? undefined : fingerprinted(address).fingerprint;
    let last = current();
    return {
      ...{ method: 'accountNotification', level },
      check(news, tell) {
        const found = news.reached(level).positions.get(address);
        if (found === undefined || !isAfter(found, position)) return false;
        position = found;
        const { account, fingerprint } = news.account(address);
        if (fingerprint === last) return false;
        last = fingerprint;
        tell(notifiedView(parts, account, shape), position.block);
        return false;
      },
      restart() {
        position = latestAt(level);
        last = current();
      },
    };
  }

  function logsSubject(address: string | undefined, level: Level): Subject {
    let position = latestAt(level);
    return {
      ...{ method: 'logsNotification', level },
      check(news, tell) {
        for (const { receipt, accounts } of news.reached(level).transactions) {
          if (!isAfter(positionOf(receipt), position)) continue;
          position = positionOf(receipt);
          const { hash, error, logs, block } = receipt;
          if (address !== undefined && !accounts.has(address)) continue;
          tell({ signature: hash, err: error, logs }, block.number);
        }
        return false;
      },
      restart() {
        position = latestAt(level);
      },
    };
  }

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
        const level = levelOf(commitmentOf(options));
        const subject = accountSubject(addressOf(address), level, shapeOf(options));
        return subscribe(connection, subject);
      },
      logsSubscribe(connection, [filter, second]) {
        const level = levelOf(commitmentOf(optionsOf(second)));
        return subscribe(connection, logsSubject(mentionedIn(filter), level));
      },
      ...{ slotUnsubscribe: unsubscribe, signatureUnsubscribe: unsubscribe },
      ...{ accountUnsubscribe: unsubscribe, logsUnsubscribe: unsubscribe },
    },
  };
}

function isAfter(one: Position, other: Position): boolean {
  return one.block > other.block || (one.block === other.block && one.index > other.index);
}

const positionOf = ({ block, index }: Receipt): Position => ({ block: block.number, index });

/** Returns the address that a filter of logs names, or undefined if it selects all transactions. */
function mentionedIn(filter: unknown): string | undefined {
  if (filter === 'all' || filter === 'allWithVotes') return undefined;
  if (!isRecord(filter)) throw invalid('Invalid params: expected `all`, `allWithVotes` or `mentions`.');
  const mentions = listOf(filter.mentions, 1);
  if (mentions.length !== 1) throw invalid('Invalid Request: Only 1 address supported');
  return addressOf(mentions[0]);
}
