import { bytesTo0xHex } from '../../crypto/encoding.ts';
import type { TokenMovement, TransactionMovements } from '../../ports/chains.ts';
import { dataBytes, list, quantity, record, text } from './answers.ts';
import type { Nodes, Read } from './nodes.ts';

// keccak256 of the event signatures: ERC-20, and WETH9, whose token is minted and burned without a `Transfer`.
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const DEPOSIT = '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c';
const WITHDRAWAL = '0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65';
const ZERO = `0x${'0'.repeat(40)}`;

/**
 * What a transaction moved, from its logs and its value; undefined while no block includes it, or the nodes disagree
 * about it.
 */
export async function movementsOf(nodes: Nodes, hash: string): Promise<TransactionMovements | undefined> {
  const answers = await nodes.readAll((read) => readMovements(read, hash));
  const texts = answers.map((answer) =>
    JSON.stringify(answer ?? null, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return new Set(texts).size === 1 ? answers[0] : undefined;
}

async function readMovements(read: Read, hash: string): Promise<TransactionMovements | undefined> {
  const [receiptAnswer, transactionAnswer] = await Promise.all([
    read('eth_getTransactionReceipt', hash),
    read('eth_getTransactionByHash', hash),
  ]);
  if (receiptAnswer === null || transactionAnswer === null) return undefined;
  const receipt = record('receipt', receiptAnswer);
  const blockNumber = quantity('blockNumber', receipt.blockNumber);
  if (quantity('status', receipt.status) !== 1n) return { blockNumber, movements: [] };
  const logged = list('logs', receipt.logs).flatMap((log) => movementOf(record('log', log)) ?? []);
  return { blockNumber, movements: [...ownValue(record('transaction', transactionAnswer)), ...once(logged)] };
}

/** The native asset that the transaction itself carries. */
function ownValue({ from, to, value }: Record<string, unknown>): TokenMovement[] {
  const rawAmount = quantity('value', value);
  if (rawAmount === 0n || to === null) return [];
  return [{ token: null, from: text('from', from), to: text('to', to), rawAmount }];
}

interface LoggedMovement extends TokenMovement {
  /** Whether it comes from an event of WETH9. */
  readonly isWrapping: boolean;
}

function movementOf(log: Record<string, unknown>): LoggedMovement | undefined {
  const [event, first, second, ...more] = list('topics', log.topics).map((topic) => text('topic', topic));
  const data = dataBytes('data', log.data);
  // NFTs have the same event with the id as a fourth topic.
  if (first === undefined || more.length > 0 || data.length !== 32) return undefined;
  const moved = { token: text('address', log.address), rawAmount: BigInt(bytesTo0xHex(data)) };
  if (event === TRANSFER && second !== undefined) {
    return { ...moved, from: addressOf(first), to: addressOf(second), isWrapping: false };
  }
  if (second !== undefined) return undefined;
  if (event === DEPOSIT) return { ...moved, from: ZERO, to: addressOf(first), isWrapping: true };
  if (event === WITHDRAWAL) return { ...moved, from: addressOf(first), to: ZERO, isWrapping: true };
  return undefined;
}

/** Some wrapped assets log `Transfer` beside the events of WETH9: each of these movements counts once. */
function once(movements: readonly LoggedMovement[]): TokenMovement[] {
  const keyOf = ({ token, from, to, rawAmount }: TokenMovement) => `${token} ${from} ${to} ${rawAmount}`;
  const transferred = new Map<string, number>();
  for (const moved of movements) {
    if (!moved.isWrapping) transferred.set(keyOf(moved), (transferred.get(keyOf(moved)) ?? 0) + 1);
  }
  return movements.flatMap(({ isWrapping, ...moved }) => {
    const left = isWrapping ? (transferred.get(keyOf(moved)) ?? 0) : 0;
    if (left === 0) return moved;
    transferred.set(keyOf(moved), left - 1);
    return [];
  });
}

function addressOf(topic: string): string {
  return `0x${topic.slice(-40)}`;
}
