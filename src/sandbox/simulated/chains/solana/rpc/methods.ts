import {
  invalid,
  METHOD_NOT_FOUND,
  type RpcCall,
  type RpcCaller,
  RpcError,
  type RpcOutcome,
} from '../../rpc-calls.ts';
import { makeTurns } from '../../turns.ts';
import { InvalidDepositError } from '../../world.ts';
import { rentExemption } from '../accounts.ts';
import type { TransactionError } from '../failures.ts';
import { fundSolana } from '../faucet.ts';
import { BLOCKHASH_LIFE, type SolanaParts } from '../parts.ts';
import { findReceipt, mentionsBefore } from '../receipts.ts';
import {
  accountAt,
  accountView,
  largestTokenAccounts,
  MAX_BYTES,
  programAccounts,
  shapeOf,
  tokenAccountBalance,
  tokenAccountsByOwner,
  tokenSupply,
} from './accounts.ts';
import { type Feed, makeFeed } from './feed.ts';
import {
  addressOf,
  BLOCK_NOT_AVAILABLE,
  commitmentOf,
  contextOf,
  integerOf,
  listOf,
  NODE_VERSION,
  type Options,
  optionsOf,
  requireSlot,
  SCAN_ERROR,
  SERVER_ERROR,
  signatureOf,
  slotAt,
  withIntegers,
} from './params.ts';
import { feeForMessage, sendTransaction, simulateTransaction } from './send.ts';
import { blockView, confirmedAt, transactionBy, withEncoding } from './transactions.ts';

type Method = (parts: SolanaParts, params: readonly unknown[], caller: RpcCaller) => unknown;

const MAX_ADDRESSES = 100;
const MAX_SIGNATURES = 256;
const MAX_FEE_ADDRESSES = 128;
const MAX_LISTED = 1_000;
/** CHOICE: a response lists at most 100,000 slots. Nodes allow 500,000. */
const MAX_SLOTS = 100_000;
const SLOTS_PER_EPOCH = 432_000;
const FEE_SLOTS = 150;
const MAX_ACCOUNT_BYTES = 10 * 1_048_576;

/** Returns a function that runs the methods of the Solana JSON-RPC on the latest state of a chain. */
export function rpcOf(parts: SolanaParts): (call: RpcCall, caller: RpcCaller) => Promise<RpcOutcome> {
  const feed = makeFeed(parts, (hash) => inclusionOf(parts, hash));
  return async ({ method, params }, caller) => {
    const { connection } = caller;
    try {
      const found = Object.hasOwn(methods, method) ? methods[method] : undefined;
      const own =
        connection !== undefined && Object.hasOwn(feed.methods, method)
          ? feed.methods[method as keyof Feed['methods']]
          : undefined;
      if (found === undefined && own === undefined) throw new RpcError(METHOD_NOT_FOUND, 'Method not found');
      await parts.blocks.catchUp();
      const result = own === undefined ? await found!(parts, params, caller) : own(connection!, params);
      return { result: converted.has(method) ? result : withIntegers(result) };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      const { code, message, data } = error;
      return { error: { code, message, ...(data === undefined ? {} : { data: withIntegers(data) }) } };
    }
  };
}

/** Methods with long responses. Their integers are converted in several turns of the event loop. */
const converted: ReadonlySet<string> = new Set(['getBlock', 'getProgramAccounts', 'getTokenAccountsByOwner']);

/** Wraps a method whose response has a context. `count` is the number of parameters before the options. */
function withContext(
  count: number,
  read: (parts: SolanaParts, params: readonly unknown[], options: Options) => unknown,
): Method {
  return async (parts, params) => {
    const options = optionsOf(withEncoding(params[count]));
    const context = contextOf(parts, options);
    return { context, value: await read(parts, params, options) };
  };
}

/** Reads and checks the options of a method whose response has no context. */
function checked(parts: SolanaParts, value: unknown): Options {
  const options = optionsOf(value);
  requireSlot(slotAt(parts, commitmentOf(options)), options);
  return options;
}

const currentSlot: Method = (parts, [options]) => slotAt(parts, commitmentOf(checked(parts, options)));

const methods: Readonly<Record<string, Method>> = {
  getHealth: () => 'ok',
  getVersion: () => ({ 'solana-core': NODE_VERSION, 'feature-set': 0 }),
  getGenesisHash: ({ caip2 }) => genesisHashOf(caip2),
  getIdentity: () => ({ identity: IDENTITY }),
  getSlot: currentSlot,
  getBlockHeight: currentSlot,
  getEpochInfo(parts, [options]) {
    const slot = slotAt(parts, commitmentOf(checked(parts, options)));
    return {
      ...{ absoluteSlot: slot, blockHeight: slot, epoch: Math.floor(slot / SLOTS_PER_EPOCH) },
      ...{ slotIndex: slot % SLOTS_PER_EPOCH, slotsInEpoch: SLOTS_PER_EPOCH },
      transactionCount: transactionCount(parts),
    };
  },
  getTransactionCount: (parts, [options]) => {
    checked(parts, options);
    return transactionCount(parts);
  },
  getLatestBlockhash: withContext(0, ({ blocks, blockhashAt }) => {
    const { number } = blocks.head();
    return { blockhash: blockhashAt(number), lastValidBlockHeight: number + BLOCKHASH_LIFE };
  }),
  isBlockhashValid: withContext(1, ({ isAlive }, [blockhash]) => isAlive(addressOf(blockhash))),
  getFeeForMessage: feeForMessage,
  getRecentPrioritizationFees({ blocks }, [addresses]) {
    for (const address of addresses == null ? [] : listOf(addresses, MAX_FEE_ADDRESSES)) addressOf(address);
    const { number } = blocks.head();
    const first = Math.max(0, number - FEE_SLOTS + 1);
    return Array.from({ length: number - first + 1 }, (_, at) => ({
      slot: first + at,
      prioritizationFee: 0,
    }));
  },
  getMinimumBalanceForRentExemption(_, [size]) {
    const bytes = integerOf(size, 'size');
    if (bytes > MAX_ACCOUNT_BYTES) throw invalid(`expected at most ${MAX_ACCOUNT_BYTES} bytes`);
    return rentExemption(bytes);
  },
  getBalance: withContext(1, (parts, [address]) => accountAt(parts, addressOf(address))?.lamports ?? 0),
  getAccountInfo: withContext(1, (parts, [address], options) => shownAccount(parts, address, options)),
  getMultipleAccounts: withContext(1, (parts, [addresses], options) => {
    const shape = { encoding: 'base64', ...options };
    return shownAccounts(parts, listOf(addresses, MAX_ADDRESSES), shape);
  }),
  async getProgramAccounts(parts, [program, second], caller) {
    const options = optionsOf(second);
    const context = contextOf(parts, options);
    const value = await programAccounts(parts, program, { options, caller });
    return options.withContext === true ? { context, value } : value;
  },
  getTokenAccountsByOwner: withContext(2, (parts, [owner, filter], options) =>
    tokenAccountsByOwner(parts, { owner: addressOf(owner), filter, options }),
  ),
  getTokenAccountBalance: withContext(1, (parts, [address]) =>
    tokenAccountBalance(parts, addressOf(address)),
  ),
  getTokenSupply: withContext(1, (parts, [mint]) => tokenSupply(parts, addressOf(mint))),
  getTokenLargestAccounts: withContext(1, (parts, [mint]) => largestTokenAccounts(parts, addressOf(mint))),
  getSignatureStatuses: withContext(1, (parts, [hashes]) =>
    listOf(hashes, MAX_SIGNATURES).map((hash) => statusView(parts, signatureOf(hash))),
  ),
  getSignaturesForAddress: (parts, [address, options]) =>
    signaturesFor(parts, addressOf(address), optionsOf(options)),
  getTransaction: (parts, [hash, options]) =>
    transactionBy(parts, signatureOf(hash), optionsOf(withEncoding(options))),
  async getBlock(parts, [slot, options]) {
    const number = integerOf(slot, 'slot');
    const block = await blockView(parts, number, optionsOf(withEncoding(options)));
    if (block === undefined) throw notAvailable(number);
    return block;
  },
  getBlockTime(parts, [slot]) {
    const number = integerOf(slot, 'slot');
    if (number > parts.blocks.head().number) throw notAvailable(number);
    return parts.blocks.secondsOf(number);
  },
  getBlocks(parts, [start, second, third]) {
    const first = integerOf(start, 'start_slot');
    const [end, options] = typeof second === 'number' ? [second, third] : [undefined, second ?? third];
    const newest = slotAt(parts, confirmedAt(checked(parts, options)));
    return slots(first, Math.min(newest, end === undefined ? newest : integerOf(end, 'end_slot')));
  },
  getBlocksWithLimit(parts, [start, limit, options]) {
    const [first, count] = [integerOf(start, 'start_slot'), integerOf(limit, 'limit')];
    if (count > MAX_SLOTS) throw invalid(`Limit too large; max ${MAX_SLOTS}`);
    const newest = slotAt(parts, confirmedAt(checked(parts, options)));
    return slots(first, Math.min(newest, first + count - 1));
  },
  getFirstAvailableBlock: () => 0,
  async requestAirdrop(parts, [address, lamports, options]) {
    commitmentOf(optionsOf(options));
    const recipient = addressOf(address);
    const rawAmount = BigInt(integerOf(lamports, 'lamports'));
    return parts.atHead(() => {
      try {
        return fundSolana(parts, { address: recipient, tokenAddress: null, rawAmount }).hash;
      } catch (error) {
        if (!(error instanceof InvalidDepositError)) throw error;
        throw new RpcError(SERVER_ERROR, `airdrop request failed: ${error.message}`);
      }
    });
  },
  sendTransaction,
  simulateTransaction,
};

/** CHOICE: the node has no identity key, so clients get this placeholder. */
const IDENTITY = '11111111111111111111111111111111';

// The reference of a chain is the first 32 characters of its genesis hash (CAIP-30).
const genesisHashes: Readonly<Record<string, string>> = {
  '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp': '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d',
  EtWTRABZaYq6iMfeYKouRu166VU2xqa1: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
  '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3z': '4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY',
};

function genesisHashOf(caip2: string): string {
  const reference = caip2.slice('solana:'.length);
  return genesisHashes[reference] ?? reference.padEnd(44, '1');
}

/**
 * Returns the id of the chain's latest transaction, as the number of its transactions.
 *
 * NOTE: ids also count the transactions of the sandbox's other chains.
 */
function transactionCount({ world: { store }, caip2 }: SolanaParts): number {
  const row = store.first<{ id: number }>(
    'select id from transactions where caip2 = ? order by id desc limit 1',
    caip2,
  );
  return row?.id ?? 0;
}

function notAvailable(slot: number): RpcError {
  return new RpcError(BLOCK_NOT_AVAILABLE, `Block not available for slot ${slot}`);
}

function slots(first: number, last: number): number[] {
  if (last - first >= MAX_SLOTS) throw invalid(`Slot range too large; max ${MAX_SLOTS}`);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
}

/**
 * Formats accounts with their data. An account that does not exist is null.
 *
 * @throws RpcError if the data of all accounts together is too long.
 */
async function shownAccounts(
  parts: SolanaParts,
  addresses: readonly unknown[],
  options: Options,
): Promise<(object | null)[]> {
  const turn = makeTurns();
  const shown: (object | null)[] = [];
  let bytes = 0;
  for (const address of addresses) {
    const account = shownAccount(parts, address, options);
    bytes += account === null ? 0 : account.space;
    shown.push(account);
    if (bytes > MAX_BYTES && options.dataSlice == null) {
      throw new RpcError(SCAN_ERROR, `expected at most ${MAX_BYTES} bytes of data: ask for a dataSlice`);
    }
    await turn();
  }
  return shown;
}

function shownAccount(parts: SolanaParts, address: unknown, options: Options) {
  const shape = shapeOf(options);
  const account = accountAt(parts, addressOf(address));
  return account === undefined ? null : accountView(parts, account, shape);
}

/** Returns the slot that includes a transaction, and its result. Returns undefined if no block includes it. */
function inclusionOf(
  { world: { store }, caip2, pool, blocks }: SolanaParts,
  hash: string,
): { readonly slot: number; readonly error: TransactionError | null } | undefined {
  const receipt = findReceipt({ store, caip2 }, hash);
  if (receipt !== undefined) return { slot: receipt.block.number, error: receipt.error };
  // A transaction in a block that a reorganization will abandon has no receipt.
  const status = pool.status(hash, blocks);
  if (status?.kind !== 'included' && status?.kind !== 'reverted') return undefined;
  const error = status.kind === 'included' ? null : { InstructionError: [0, { Custom: 0 }] as const };
  return { slot: Number(status.blockNumber), error };
}

function statusView(parts: SolanaParts, hash: string): object | null {
  const found = inclusionOf(parts, hash);
  if (found === undefined) return null;
  const { slot, error } = found;
  const isFinal = slot <= slotAt(parts, 'finalized');
  return {
    ...{ slot, confirmations: isFinal ? null : Math.max(0, parts.blocks.head().number - slot) },
    ...{ err: error, status: error === null ? { Ok: null } : { Err: error } },
    confirmationStatus: isFinal ? 'finalized' : 'confirmed',
  };
}

/** Returns the transactions that name an address, newest first. */
async function signaturesFor(parts: SolanaParts, address: string, options: Options): Promise<object[]> {
  const { world, caip2 } = parts;
  const place = { store: world.store, caip2 };
  const level = confirmedAt(options);
  const newest = slotAt(parts, level);
  requireSlot(newest, options);
  const limit = options.limit == null ? MAX_LISTED : integerOf(options.limit, 'limit');
  if (limit === 0 || limit > MAX_LISTED) throw invalid(`Invalid limit; max ${MAX_LISTED}`);
  /**
   * Returns the position of the transaction with a signature. Undefined if no signature was given, and null if it is
   * unknown at the commitment level.
   */
  const positionOf = (hash: unknown) => {
    if (hash === undefined || hash === null) return undefined;
    const receipt = findReceipt(place, signatureOf(hash));
    if (receipt === undefined || receipt.block.number > newest) return null;
    return { block: receipt.block.number, index: receipt.index };
  };
  const [before, until] = [positionOf(options.before), positionOf(options.until)];
  // An unknown `before` selects no transaction, but an unknown `until` is ignored. Source: agave, blockstore.rs,
  // get_confirmed_signatures_for_address2.
  if (before === null) return [];
  const hashes = mentionsBefore(place, address, {
    before: before ?? { block: newest + 1, index: -1 },
    until: until ?? { block: -1, index: -1 },
    limit,
  });
  const turn = makeTurns();
  const final = slotAt(parts, 'finalized');
  const found: object[] = [];
  for (const hash of hashes) {
    const receipt = findReceipt(place, hash);
    if (receipt === undefined) continue;
    const { block, error, logs } = receipt;
    found.push({
      ...{ signature: hash, slot: block.number, err: error, memo: memoOf(logs), blockTime: block.seconds },
      confirmationStatus: block.number <= final ? 'finalized' : 'confirmed',
    });
    await turn();
  }
  return found;
}

/** Returns the memos of a transaction in the format `[length] text`. Null if it has none. */
function memoOf(logs: readonly string[]): string | null {
  const memos = logs.flatMap((line, index) => {
    const [, length] = /^Program log: Memo \(len (\d+)\)/.exec(line) ?? [];
    const text = logs[index + 1]?.replace(/^Program log: /, '');
    return length === undefined || text === undefined ? [] : [`[${length}] ${text}`];
  });
  return memos.length === 0 ? null : memos.join('; ');
}
