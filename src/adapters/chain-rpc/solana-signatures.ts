import { readInteger, readList, readRecord, readText } from './endpoint.ts';
import type { Read } from './nodes.ts';

/** The maximum number of signatures in one response of a node. */
const PAGE_SIGNATURES = 1000;
/**
 * CHOICE: the maximum number of pages that are read of one slot. They hold far more transactions than one slot of
 * Solana can hold for one account.
 */
const MAX_PAGES = 10;

/**
 * The part of an address's transactions that is still unread: those after slot `from` up to slot `to`, newest first.
 * The range does not depend on a node. `before` is only a hint about where to search.
 */
export interface AddressRange {
  readonly address: string;
  readonly from: number;
  readonly to: number;
  /**
   * The transactions in slot `to` up to this signature have been read, in ascending order. Undefined if none has been
   * read.
   */
  readonly done?: string | undefined;
  /** For each account, a signature in a later slot than `to`, after which a node's list continues. */
  readonly before?: Readonly<Record<string, string>> | undefined;
}

interface Signature {
  readonly hash: string;
  readonly slot: number;
  readonly isSuccess: boolean;
}

/** The result of reading a part of a range. */
export interface ReadSignatures {
  /** Successful transactions, later slots first. */
  readonly hashes: readonly string[];
  readonly rest: AddressRange;
}

export interface SignatureQuestion {
  /** The address and its token accounts. */
  readonly accounts: readonly string[];
  readonly range: AddressRange;
  readonly commitment: 'confirmed' | 'finalized';
  /** The maximum number of transactions to return. */
  readonly limit: number;
}

/**
 * Returns the next signatures of a range. Reads one page for each account, and more only while they all belong to one
 * slot. Slots that no page contains completely are read the next time.
 */
export async function nextSignatures(read: Read, question: SignatureQuestion): Promise<ReadSignatures> {
  const { accounts, range, limit } = question;
  const lists = await Promise.all(accounts.map((account) => listOf(read, account, question)));
  // In every list, slots after this one are complete.
  const covered = Math.max(range.from, ...lists.map((each) => each.coveredAfter));
  const found = new Map<string, Signature>();
  for (const each of lists.flatMap(({ items }) => items)) {
    if (each.isSuccess && each.slot > covered && isLeft(range, each)) found.set(each.hash, each);
  }
  const ordered = [...found.values()].toSorted(
    (a, b) => b.slot - a.slot || (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0),
  );
  const taken = ordered.slice(0, limit);
  const last = taken.length < ordered.length ? taken.at(-1) : undefined;
  const to = last?.slot ?? Math.min(range.to, covered);
  const done = last?.hash ?? (to === range.to ? range.done : undefined);
  const before = Object.fromEntries(
    lists.flatMap(({ account, items }) => {
      const hint = items.findLast(({ slot }) => slot > to)?.hash ?? range.before?.[account];
      return hint === undefined ? [] : [[account, hint]];
    }),
  );
  return { hashes: taken.map(({ hash }) => hash), rest: { ...range, to, done, before } };
}

/** Returns whether a transaction of this slot and signature is in the range. */
export function isLeft(
  { from, to, done }: AddressRange,
  { slot, hash }: Pick<Signature, 'slot' | 'hash'>,
): boolean {
  return slot > from && (slot < to || (slot === to && (done === undefined || hash > done)));
}

interface SignatureList {
  readonly account: string;
  /** The signatures, newest first. */
  readonly items: readonly Signature[];
  /** From the hint on, the list contains all transactions in slots after this one. */
  readonly coveredAfter: number;
}

async function listOf(
  read: Read,
  account: string,
  { range, commitment }: SignatureQuestion,
): Promise<SignatureList> {
  const items: Signature[] = [];
  let before = range.before?.[account];
  for (let page = 1; ; page += 1) {
    const found = await pageOf(read, account, { before, commitment, minContextSlot: range.to });
    const last = found.at(-1) ?? items.at(-1);
    if (found.length === 0 && before !== undefined && !(await isKnown(read, before))) {
      // A node lists nothing after a signature that it does not have, for example of a transaction that a fork has
      // dropped.
      if (last !== undefined) return { account, items, coveredAfter: last.slot };
      before = undefined;
      continue;
    }
    items.push(...found);
    if (found.length < PAGE_SIGNATURES || last === undefined || last.slot <= range.from) {
      return { account, items, coveredAfter: range.from };
    }
    if (last.slot !== range.to) return { account, items, coveredAfter: last.slot };
    if (page >= MAX_PAGES) {
      throw new Error(`more than ${items.length} transactions of \`${account}\` in slot ${last.slot}`);
    }
    before = last.hash;
  }
}

interface PageTerms {
  readonly before: string | undefined;
  readonly commitment: 'confirmed' | 'finalized';
  /** A node that lags behind returns an error for this slot, instead of omitting the newer transactions. */
  readonly minContextSlot: number;
}

async function pageOf(read: Read, account: string, { before, ...terms }: PageTerms): Promise<Signature[]> {
  const method = 'getSignaturesForAddress';
  const options = { ...terms, limit: PAGE_SIGNATURES, ...(before === undefined ? {} : { before }) };
  return readList(method, await read(method, account, options)).map((item) => {
    const { signature, slot, err } = readRecord(method, item);
    return {
      hash: readText(method, signature),
      slot: Number(readInteger(method, slot)),
      isSuccess: err === null || err === undefined,
    };
  });
}

async function isKnown(read: Read, hash: string): Promise<boolean> {
  const method = 'getSignatureStatuses';
  const answer = readRecord(method, await read(method, [hash], { searchTransactionHistory: true }));
  const [status] = readList(method, answer.value);
  return status !== null && status !== undefined;
}
