import type { ChainTransfer, TransferPage, TransferReading } from '../../ports/chain-transfers.ts';
import type { Log } from '../../ports/log.ts';
import { associatedTokenAddress } from '../../signing/solana/associated-token.ts';
import { integer, list, record, text, unexpected } from './answers.ts';
import { allEqual, type Nodes, type Read } from './nodes.ts';

/**
 * CHOICE: the addresses that are asked for in one page, so at most this many per second: Solana has no list of the
 * transfers of a block that is small enough to be read. A round takes as many seconds as there are pages.
 */
const PAGE_ADDRESSES = 20;
/** Addresses that are asked for at once. */
const AT_ONCE = 5;
/** The most signatures that a node returns at once. */
const PAGE_SIGNATURES = 1000;
/** CHOICE: the pages of signatures of one account that are read in one round. */
const MAX_PAGES = 3;

export interface SolanaTransfersOptions {
  readonly nodes: Nodes;
  readonly caip2: string;
  readonly log: Log;
  readonly commitment: 'confirmed' | 'finalized';
  /** Mints of the tokens whose accounts are watched. */
  readonly namedTokens: readonly string[];
}

/** A round asks for the transactions of every watched address after slot `from`, up to slot `to`. */
interface Round {
  readonly from: number;
  readonly to: number;
  /** The last address that was asked for; undefined once all were. */
  readonly address: string | undefined;
  readonly isEnded: boolean;
}

/**
 * Reads the transfers to watched addresses by the signatures of each address and of its associated token accounts of
 * the named tokens, in rounds over all addresses. A token without a name is found when the transaction names the
 * address itself, as those do that make its token account. All nodes that respond must agree.
 *
 * CHOICE: reading begins with the slot of the first reading.
 */
export async function solanaTransfersAfter(
  options: SolanaTransfersOptions,
  reading: TransferReading,
): Promise<TransferPage> {
  const round = await currentRound(options, reading.after);
  if (round.isEnded) return { transfers: [], position: writeRound(round), hasMore: false };
  const addresses = await reading.watched.nextOnSolana(round.address, PAGE_ADDRESSES);
  const transfers: ChainTransfer[] = [];
  for (let start = 0; start < addresses.length; start += AT_ONCE) {
    const some = addresses.slice(start, start + AT_ONCE);
    const found = await Promise.all(some.map((address) => transfersOfAddress(options, address, round)));
    transfers.push(...found.flat());
  }
  const isEnded = addresses.length < PAGE_ADDRESSES;
  const position = writeRound({ ...round, address: addresses.at(-1) ?? round.address, isEnded });
  return { transfers, position, hasMore: false };
}

/** The round under way, or the next one, which begins where the last one ended. */
async function currentRound(options: SolanaTransfersOptions, position: string | undefined): Promise<Round> {
  const round = position === undefined ? undefined : readRound(position);
  if (round !== undefined && !round.isEnded) return round;
  const slot = await lowestSlot(options);
  if (round === undefined) return { from: slot, to: slot, address: undefined, isEnded: true };
  if (slot <= round.to) return round;
  return { from: round.to, to: slot, address: undefined, isEnded: false };
}

/** The lowest slot of the nodes, so that all of them know the transactions up to it. */
function lowestSlot({ nodes, commitment }: SolanaTransfersOptions): Promise<number> {
  return nodes.compare({
    what: 'the newest slot',
    ask: async (read) => Number(integer('getSlot', await read('getSlot', { commitment }))),
    settle: (slots) => ({ answer: Math.min(...slots) }),
  });
}

async function transfersOfAddress(
  options: SolanaTransfersOptions,
  address: string,
  round: Round,
): Promise<readonly ChainTransfer[]> {
  const { nodes, caip2, log, namedTokens } = options;
  const accounts = [address, ...namedTokens.map((mint) => associatedTokenAddress(address, mint))];
  return nodes.compare({
    what: `the transactions of \`${address}\``,
    async ask(read) {
      const hashes = new Set<string>();
      for (const account of accounts) {
        const { signatures, isComplete } = await signaturesOf(read, account, { options, round });
        if (!isComplete) {
          log.error(
            { caip2, address: account },
            'an address has too many transactions to be read; the oldest are not reported',
          );
        }
        for (const signature of signatures) hashes.add(signature);
      }
      const transfers: ChainTransfer[] = [];
      for (const hash of hashes) transfers.push(...(await transfersIn(read, { options, hash, address })));
      return transfers.sort(inOrder);
    },
    settle: allEqual((transfers) =>
      JSON.stringify(transfers, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    ),
  });
}

/** Nodes may return the transactions of one slot in any order. */
function inOrder(left: ChainTransfer, right: ChainTransfer): number {
  if (left.blockNumber !== right.blockNumber) return left.blockNumber < right.blockNumber ? -1 : 1;
  return left.key < right.key ? -1 : 1;
}

/** The signatures of successful transactions of an account in the slots of a round. */
async function signaturesOf(
  read: Read,
  account: string,
  { options: { commitment }, round }: { options: SolanaTransfersOptions; round: Round },
): Promise<{ signatures: readonly string[]; isComplete: boolean }> {
  const method = 'getSignaturesForAddress';
  const signatures: string[] = [];
  let before: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const options = { commitment, limit: PAGE_SIGNATURES, ...(before === undefined ? {} : { before }) };
    const found = list(method, await read(method, account, options)).map((item) => {
      const { signature, slot, err } = record(method, item);
      return { signature: text(method, signature), slot: Number(integer(method, slot)), err };
    });
    // Newest first.
    for (const { signature, slot, err } of found) {
      const isOfRound = slot > round.from && slot <= round.to;
      if (isOfRound && (err === null || err === undefined)) signatures.push(signature);
    }
    const last = found.at(-1);
    if (last === undefined || last.slot <= round.from || found.length < PAGE_SIGNATURES) {
      return { signatures, isComplete: true };
    }
    before = last.signature;
  }
  return { signatures, isComplete: false };
}

interface Held {
  readonly owner: string;
  readonly before: bigint;
  readonly after: bigint;
}

/** What an address gained in a transaction, of each asset. */
async function transfersIn(
  read: Read,
  {
    options: { commitment },
    hash,
    address,
  }: { options: SolanaTransfersOptions; hash: string; address: string },
): Promise<ChainTransfer[]> {
  const method = 'getTransaction';
  const options = { commitment, encoding: 'json', maxSupportedTransactionVersion: 0 };
  const answer = record(method, await read(method, hash, options));
  const meta = record(method, answer.meta);
  if (meta.err !== null && meta.err !== undefined) return [];
  const blockNumber = integer(method, answer.slot);
  const common = {
    hash,
    recipient: address,
    blockNumber,
    blockTimestampSeconds: Number(answer.blockTime ?? 0),
    position: `${blockNumber}:${hash}`,
  };
  return [...heldByAsset(answer, meta)].flatMap(([tokenAddress, held]) => {
    const own = held.filter(({ owner }) => owner === address);
    const rawAmount = own.reduce((sum, { before, after }) => sum + after - before, 0n);
    if (rawAmount <= 0n) return [];
    const sender = senderOf(held, address);
    return [{ ...common, sender, tokenAddress, rawAmount, key: `${hash}:${tokenAddress ?? 'native'}` }];
  });
}

/** CHOICE: the sender is the account that lost most of the asset; for a minted token, the recipient. */
function senderOf(held: readonly Held[], recipient: string): string {
  let sender = { owner: recipient, lost: 0n };
  for (const { owner, before, after } of held) {
    if (owner !== recipient && before - after > sender.lost) sender = { owner, lost: before - after };
  }
  return sender.owner;
}

/** Balances before and after a transaction, by mint; null is the native asset. */
function heldByAsset(
  answer: Record<string, unknown>,
  meta: Record<string, unknown>,
): ReadonlyMap<string | null, readonly Held[]> {
  const method = 'getTransaction';
  const { message } = record(method, answer.transaction);
  const loaded = meta.loadedAddresses === undefined ? {} : record(method, meta.loadedAddresses);
  const keys = [
    ...list(method, record(method, message).accountKeys),
    ...list(method, loaded.writable ?? []),
    ...list(method, loaded.readonly ?? []),
  ].map((key) => text(method, key));
  const [before, after] = [meta.preBalances, meta.postBalances].map((balances) =>
    list(method, balances).map((balance) => integer(method, balance)),
  );
  if (before!.length !== keys.length || after!.length !== keys.length) unexpected(method);
  const held = new Map<string | null, Held[]>([
    [null, keys.map((owner, index) => ({ owner, before: before![index]!, after: after![index]! }))],
  ]);
  for (const [side, balances] of [
    ['before', meta.preTokenBalances],
    ['after', meta.postTokenBalances],
  ] as const) {
    for (const item of list(method, balances ?? [])) {
      const { mint, owner, uiTokenAmount } = record(method, item);
      const amount = text(method, record(method, uiTokenAmount).amount);
      if (!/^\d{1,20}$/.test(amount)) unexpected(method);
      const entry = { owner: text(method, owner), before: 0n, after: 0n, [side]: BigInt(amount) };
      const key = text(method, mint);
      held.set(key, [...(held.get(key) ?? []), entry]);
    }
  }
  return held;
}

function writeRound(round: Round): string {
  return JSON.stringify(round);
}

function readRound(position: string): Round {
  return JSON.parse(position) as Round;
}
