import { isTooMuch, readList, readQuantity, readRecord, readText, refuseAnswer } from './endpoint.ts';
import type { Read } from './nodes.ts';

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/**
 * CHOICE: the maximum number of transfers of unnamed tokens that one transaction reports to an address. Anyone can
 * deploy a token that logs thousands of transfers at almost no cost.
 */
const UNNAMED_PER_TRANSACTION = 20;

/** A block and its transfers. */
export interface ReadBlock {
  readonly number: bigint;
  readonly hash: string;
  readonly parentHash: string;
  readonly timestampSeconds: number;
  /** Whether the block is too large to be read completely. `transfers` then contains only transfers of named tokens. */
  readonly isTooLarge: boolean;
  /** Transfers of the native asset first, then of tokens, each in the order of the block. */
  readonly transfers: readonly BlockTransfer[];
}

/** A transfer. Addresses are lower case. */
export interface BlockTransfer {
  readonly hash: string;
  readonly sender: string;
  readonly recipient: string;
  /** Null means the native asset. */
  readonly token: string | null;
  readonly rawAmount: bigint;
  /** The index of the log in the block, or `n` and the index of the transaction. */
  readonly place: string;
  /** The index of the transfer in its transaction, or `n` for the value of the transaction itself. */
  readonly ordinal: string;
}

interface BlockQuestion {
  readonly number: bigint;
  /** Lower-case addresses. */
  readonly namedTokens: readonly string[];
}

/**
 * Reads a block and its transfers by two calls. The logs are requested by the block's hash, so both responses belong
 * to the same block.
 */
export async function readBlock(read: Read, question: BlockQuestion): Promise<ReadBlock> {
  const method = 'eth_getBlockByNumber';
  const whole = await unlessTooLarge(() => read(method, toQuantity(question.number), true));
  const block = readRecord(method, whole ?? (await read(method, toQuantity(question.number), false)));
  const header = headerOf(block, question.number);
  const timestampSeconds = Number(readQuantity('timestamp', block.timestamp));
  const logs = await unlessTooLarge(() =>
    read('eth_getLogs', { blockHash: header.hash, topics: [TRANSFER] }),
  );
  if (whole === undefined || logs === undefined) {
    const transfers = await namedTransfers(read, { ...question, blockHash: header.hash });
    return { ...header, timestampSeconds, isTooLarge: true, transfers };
  }
  const native = readList(method, block.transactions).flatMap((each) =>
    nativeTransfer(readRecord(method, each)),
  );
  const tokens = withoutFloods(tokenTransfers(logs, header.hash), new Set(question.namedTokens));
  return { ...header, timestampSeconds, isTooLarge: false, transfers: [...native, ...tokens] };
}

/**
 * Merges the results of several nodes for one block. Some of them may have found the block too large.
 *
 * @returns undefined if the nodes differ.
 */
export function agreedBlock(
  blocks: readonly ReadBlock[],
  namedTokens: readonly string[],
): { readonly answer: ReadBlock } | undefined {
  const isTooLarge = blocks.some((block) => block.isTooLarge);
  const comparable = blocks.map((block) => (isTooLarge ? onlyNamed(block, namedTokens) : block));
  const texts = comparable.map((block) =>
    JSON.stringify(block, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return new Set(texts).size === 1 ? { answer: comparable[0]! } : undefined;
}

function onlyNamed(block: ReadBlock, namedTokens: readonly string[]): ReadBlock {
  const transfers = block.transfers
    .filter(({ token }) => token !== null && namedTokens.includes(token))
    // Nodes that returned different logs number the transfers differently, so use the place in the block.
    .map((transfer) => ({ ...transfer, ordinal: `l${transfer.place}` }));
  return { ...block, isTooLarge: true, transfers };
}

/** Reads the header of a block that the node must have. */
export async function readHeader(
  read: Read,
  number: bigint,
): Promise<Pick<ReadBlock, 'number' | 'hash' | 'parentHash'>> {
  const answer = await read('eth_getBlockByNumber', toQuantity(number), false);
  return headerOf(readRecord('block', answer), number);
}

export async function hasSucceeded(read: Read, hash: string, blockHash: string): Promise<boolean> {
  const method = 'eth_getTransactionReceipt';
  const receipt = readRecord(method, await read(method, hash));
  if (hashText(receipt.blockHash) !== blockHash) refuseAnswer(method);
  return readQuantity('status', receipt.status) === 1n;
}

function headerOf(block: Record<string, unknown>, number: bigint) {
  if (readQuantity('number', block.number) !== number) refuseAnswer('eth_getBlockByNumber');
  return { number, hash: hashText(block.hash), parentHash: hashText(block.parentHash) };
}

async function unlessTooLarge(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    return await ask();
  } catch (error) {
    if (isTooMuch(error)) return undefined;
    throw error;
  }
}

/**
 * Reads the transfers of named tokens in a block that does not fit into a response.
 *
 * CHOICE: somebody filled such a block on purpose, so other transfers are not read. Transfers of named tokens cannot be
 * forged: each of them is a real transfer at its sender's cost.
 */
async function namedTransfers(
  read: Read,
  { namedTokens, blockHash }: BlockQuestion & { readonly blockHash: string },
): Promise<readonly BlockTransfer[]> {
  if (namedTokens.length === 0) return [];
  const logs = await read('eth_getLogs', { blockHash, topics: [TRANSFER], address: namedTokens });
  return tokenTransfers(logs, blockHash);
}

function nativeTransfer(transaction: Record<string, unknown>): BlockTransfer[] {
  const { hash, from, to, value, transactionIndex } = transaction;
  if (to === null || to === undefined) return [];
  const rawAmount = readQuantity('value', value);
  if (rawAmount === 0n) return [];
  return [
    {
      hash: hashText(hash),
      sender: addressText(from),
      recipient: addressText(to),
      token: null,
      rawAmount,
      place: `n${readQuantity('transactionIndex', transactionIndex)}`,
      ordinal: 'n',
    },
  ];
}

/** Returns the transfers in the order of the block, each log once. */
function tokenTransfers(logs: unknown, blockHash: string): BlockTransfer[] {
  const byIndex = new Map<number, Record<string, unknown>>();
  for (const item of readList('eth_getLogs', logs)) {
    const entry = readRecord('eth_getLogs', item);
    if (entry.removed === true || hashText(entry.blockHash) !== blockHash) refuseAnswer('eth_getLogs');
    byIndex.set(Number(readQuantity('logIndex', entry.logIndex)), entry);
  }
  const counts = new Map<string, number>();
  return [...byIndex]
    .sort(([left], [right]) => left - right)
    .flatMap(([index, entry]) => {
      const hash = hashText(entry.transactionHash);
      const count = counts.get(hash) ?? 0;
      counts.set(hash, count + 1);
      return tokenTransfer(entry, { hash, place: String(index), ordinal: String(count) });
    });
}

/**
 * Reads a log as a transfer of an ERC-20 token. Returns an empty list for any other log, because contracts may log
 * anything under this topic.
 */
function tokenTransfer(
  entry: Record<string, unknown>,
  place: Pick<BlockTransfer, 'hash' | 'place' | 'ordinal'>,
): BlockTransfer[] {
  const [topic, from, to, ...more] = readList('topics', entry.topics).map((each) =>
    readText('topics', each).toLowerCase(),
  );
  const data = readText('data', entry.data);
  const [sender, recipient] = [paddedAddress(from), paddedAddress(to)];
  if (topic !== TRANSFER || more.length > 0 || sender === undefined || recipient === undefined) return [];
  if (!/^0x[0-9a-fA-F]{64}$/.test(data)) return [];
  const rawAmount = BigInt(data);
  return rawAmount === 0n
    ? []
    : [{ ...place, sender, recipient, token: addressText(entry.address), rawAmount }];
}

function withoutFloods(transfers: readonly BlockTransfer[], named: ReadonlySet<string>): BlockTransfer[] {
  const counts = new Map<string, number>();
  return transfers.filter(({ hash, recipient, token }) => {
    if (named.has(token ?? '')) return true;
    const key = `${hash}:${recipient}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return count <= UNNAMED_PER_TRANSACTION;
  });
}

function paddedAddress(topic: string | undefined): string | undefined {
  return topic !== undefined && /^0x0{24}[0-9a-f]{40}$/.test(topic) ? `0x${topic.slice(26)}` : undefined;
}

function addressText(value: unknown): string {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(value)) refuseAnswer('address');
  return value.toLowerCase();
}

function hashText(value: unknown): string {
  if (typeof value !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(value)) refuseAnswer('hash');
  return value.toLowerCase();
}

function toQuantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}
