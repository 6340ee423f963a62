import { bytesTo0xHex } from '../../crypto/encoding.ts';
import type { ChainStatus, Inclusion } from '../../ports/chains.ts';
import { decodeEthereumTransaction } from '../../signing/ethereum/decode-transaction.ts';
import { recoverEthereumSender } from '../../signing/ethereum/recover-sender.ts';
import { list, quantity, record } from './answers.ts';
import { NodeError } from './endpoint.ts';
import type { Nodes, Read } from './nodes.ts';

/*
 * The status of a transaction. Providers balance calls over nodes that are blocks apart, and a node may lie: an
 * inclusion counts only if every node that responds has the same, and a used nonce only in a final block.
 */

/** Confirmations after which a block counts as final on a chain without the `finalized` tag. */
const FINAL_CONFIRMATIONS = 64n;
/** CHOICE: looks at a used nonce are this many blocks apart: several minutes on Ethereum, a minute on most rollups. */
const NONCE_LOOKS_APART = 64n;
/** CHOICE: looks at a transaction that has left its block are this many blocks apart. */
const BLOCK_LOOKS_APART = 5n;
/** Nodes that are closer together than this lag; beyond it, they contradict each other. */
const LAG_BLOCKS = 64n;

interface Sent {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  /** Whether its nonce counts in a lane of its own, of which nodes count nothing. */
  readonly hasOwnLane: boolean;
}

/** One node's answer about a transaction. */
type NodeView =
  | { readonly kind: 'included'; readonly inclusion: Included; readonly finalBlock: bigint }
  /** In its pool, or in a block whose receipt it lacks. */
  | { readonly kind: 'known'; readonly isInBlock: boolean; readonly head: bigint }
  | ({ readonly kind: 'unknown' } & Counts);

interface Included extends Inclusion {
  readonly blockHash: string;
  readonly isSuccess: boolean;
}

interface Counts {
  readonly head: bigint;
  readonly finalBlock: bigint;
  readonly count: bigint;
  /** The transaction count in the final block; undefined if the node has no state of it. */
  readonly finalCount: bigint | undefined;
}

export async function evmStatusOf(nodes: Nodes, hash: string, signedBytes: Uint8Array): Promise<ChainStatus> {
  const serialized = bytesTo0xHex(signedBytes);
  const view = await decodeEthereumTransaction(serialized);
  const sender = (await recoverEthereumSender(serialized, view)).toLowerCase();
  const hasOwnLane = (view.tempo?.nonceKey ?? 0n) !== 0n;
  const sent: Sent = { hash: hash.toLowerCase(), sender, nonce: view.nonce, hasOwnLane };
  const views = await nodes.readAll((read) => viewOf(read, sent));
  const included = views.filter((each) => each.kind === 'included');
  const [first] = included;
  if (first === undefined) return statusOutsideBlocks(nodes, sent, views);
  const isSame = new Set(included.map(({ inclusion }) => keyOf(inclusion))).size === 1;
  if (!isSame || included.length < views.length) {
    const isLag = isSame && views.every((each) => lagsBehind(each, first.inclusion.blockNumber));
    if (!isLag) nodes.reportDisagreement(`the transaction \`${hash}\``);
    return { kind: 'undecided' };
  }
  const { blockHash: _, isSuccess, ...inclusion } = first.inclusion;
  const isFinal = included.every(({ finalBlock }) => finalBlock >= inclusion.blockNumber);
  return isSuccess
    ? { kind: 'included', isFinal, ...inclusion }
    : { kind: 'reverted', isFinal, reason: 'execution reverted', ...inclusion };
}

function keyOf({ blockHash, blockNumber, blockTimestampSeconds, isSuccess, feePaid }: Included): string {
  return [blockHash, blockNumber, blockTimestampSeconds, isSuccess, feePaid].join(' ');
}

/** Whether a node may simply not have come to the block yet. */
function lagsBehind(view: NodeView, blockNumber: bigint): boolean {
  if (view.kind === 'included' || (view.kind === 'known' && view.isInBlock)) return true;
  return view.head < blockNumber && blockNumber - view.head < LAG_BLOCKS;
}

async function statusOutsideBlocks(
  nodes: Nodes,
  sent: Sent,
  views: readonly NodeView[],
): Promise<ChainStatus> {
  const others = views.filter((each) => each.kind !== 'included');
  const look = { at: lowest(others.map(({ head }) => head)), distance: BLOCK_LOOKS_APART };
  const known = others.filter((each) => each.kind === 'known');
  if (known.some(({ isInBlock }) => isInBlock)) return { kind: 'undecided' };
  if (known.length > 0) return { kind: 'pending', look };
  const counts = others.filter((each) => each.kind === 'unknown');
  if (sent.hasOwnLane || counts.every(({ count }) => count <= sent.nonce)) {
    return { kind: 'unknown', isExpired: false, look };
  }
  const isUsed = ({ count, finalCount = count }: Counts): boolean =>
    count > sent.nonce && finalCount > sent.nonce;
  return counts.every(isUsed) ? statusOfUsedNonce(nodes, sent, counts) : { kind: 'undecided' };
}

/** No node has the transaction, and all say that its nonce is used in a final block. */
async function statusOfUsedNonce(nodes: Nodes, sent: Sent, counts: readonly Counts[]): Promise<ChainStatus> {
  const at = lowest(counts.map(({ finalBlock }) => finalBlock));
  const users = (await nodes.readAll((read) => userOfNonce(read, sent, at))).filter(
    (hash) => hash !== undefined,
  );
  const [byHash] = users;
  if (byHash !== undefined) {
    if (users.every((hash) => hash === byHash) && byHash !== sent.hash) return { kind: 'replaced', byHash };
    nodes.reportDisagreement(`the transaction \`${sent.hash}\``);
    return { kind: 'undecided' };
  }
  // A node without the state of its final block gave the count of its newest one: that has to become final first.
  const unfinal = counts.map(({ finalCount, head, finalBlock }) =>
    finalCount === undefined ? head - finalBlock : 0n,
  );
  return { kind: 'gone', as: 'replaced', look: { at, distance: NONCE_LOOKS_APART + highest(unfinal) } };
}

/**
 * The transaction in a block up to `final` that used the sender's nonce. Undefined if the node lacks the state of old
 * blocks, or an authorization (EIP-7702) used the nonce.
 */
async function userOfNonce(read: Read, { sender, nonce }: Sent, final: bigint): Promise<string | undefined> {
  const countAt = async (block: bigint): Promise<bigint> =>
    quantity('nonce', await read('eth_getTransactionCount', sender, toQuantity(block)));
  try {
    if ((await countAt(final)) <= nonce) return undefined;
    // INVARIANT: the nonce is used in `used`, and not yet in `unused`.
    let [unused, used] = [-1n, final];
    for (let step = 1n; used - step >= 0n; step *= 2n) {
      const before = used - step;
      if ((await countAt(before)) > nonce) used = before;
      else {
        unused = before;
        break;
      }
    }
    while (used - unused > 1n) {
      const middle = unused + (used - unused) / 2n;
      if ((await countAt(middle)) > nonce) used = middle;
      else unused = middle;
    }
    const block = record('block', await read('eth_getBlockByNumber', toQuantity(used), true));
    const user = list('block', block.transactions)
      .map((each) => record('transaction', each))
      .find((each) => String(each.from).toLowerCase() === sender && quantity('nonce', each.nonce) === nonce);
    return typeof user?.hash === 'string' ? user.hash.toLowerCase() : undefined;
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

async function viewOf(read: Read, sent: Sent): Promise<NodeView> {
  const inclusion = await inclusionOf(read, sent.hash);
  if (inclusion !== undefined) {
    const head = quantity('eth_blockNumber', await read('eth_blockNumber'));
    return { kind: 'included', inclusion, finalBlock: await finalBlockOf(read, head) };
  }
  const transaction = await read('eth_getTransactionByHash', sent.hash);
  const head = quantity('eth_blockNumber', await read('eth_blockNumber'));
  if (transaction !== null) {
    const { blockHash } = record('transaction', transaction);
    return { kind: 'known', isInBlock: typeof blockHash === 'string', head };
  }
  const count = quantity('nonce', await read('eth_getTransactionCount', sent.sender, 'latest'));
  const finalBlock = await finalBlockOf(read, head);
  const isUsed = count > sent.nonce && !sent.hasOwnLane;
  const finalCount = isUsed ? await countIn(read, sent.sender, finalBlock) : count;
  return { kind: 'unknown', head, finalBlock, count, finalCount };
}

async function countIn(read: Read, sender: string, block: bigint): Promise<bigint | undefined> {
  if (block < 0n) return 0n;
  try {
    return quantity('nonce', await read('eth_getTransactionCount', sender, toQuantity(block)));
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

async function inclusionOf(read: Read, hash: string): Promise<Included | undefined> {
  const answer = await read('eth_getTransactionReceipt', hash);
  if (answer === null) return undefined;
  const receipt = record('receipt', answer);
  const blockNumber = quantity('blockNumber', receipt.blockNumber);
  const block = await read('eth_getBlockByHash', receipt.blockHash, false);
  // A reorganization removed the block in the meantime.
  if (block === null) return undefined;
  const gasPrice = quantity('effectiveGasPrice', receipt.effectiveGasPrice);
  // Rollups add the cost of publishing the data on layer 1.
  const l1Fee = receipt.l1Fee === undefined || receipt.l1Fee === null ? 0n : quantity('l1Fee', receipt.l1Fee);
  return {
    blockHash: String(receipt.blockHash).toLowerCase(),
    blockNumber,
    blockTimestampSeconds: Number(quantity('timestamp', record('block', block).timestamp)),
    feePaid: quantity('gasUsed', receipt.gasUsed) * gasPrice + l1Fee,
    isSuccess: quantity('status', receipt.status) === 1n,
  };
}

/** The newest final block number; negative while the chain has no final block. */
async function finalBlockOf(read: Read, head: bigint): Promise<bigint> {
  try {
    const block = await read('eth_getBlockByNumber', 'finalized', false);
    if (block !== null) return quantity('number', record('block', block).number);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
  }
  return head - FINAL_CONFIRMATIONS;
}

function lowest(numbers: readonly bigint[]): bigint {
  return numbers.reduce((one, other) => (other < one ? other : one));
}

function highest(numbers: readonly bigint[]): bigint {
  return numbers.reduce((one, other) => (other > one ? other : one));
}

function toQuantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}
