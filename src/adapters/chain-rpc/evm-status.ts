import * as AbiParameters from 'ox/AbiParameters';
import { bytesTo0xHex } from '../../engine/crypto/encoding.ts';
import {
  decodeEthereumTransaction,
  recoverEthereumSender,
} from '../../engine/signing/ethereum/any-transaction.ts';
import type {
  BroadcastRefusal,
  ChainStatus,
  EvmCall,
  Inclusion,
  SequenceSimulation,
  Simulation,
} from '../../ports/chains.ts';
import { cutText, NodeError, readList, readQuantity, readRecord } from './endpoint.ts';
import type { Nodes, Read } from './nodes.ts';

/*
 * Determines the status of a transaction. Providers balance calls over nodes that can be several blocks apart, and a
 * node may return false data. An inclusion therefore counts only if every node that responds reports the same one. A
 * used nonce counts only in a final block.
 */

/** The number of confirmations after which a block is final on a chain without the `finalized` tag. */
const FINAL_CONFIRMATIONS = 64n;
/**
 * CHOICE: two checks of a used nonce are this many blocks apart: several minutes on Ethereum, a minute on most
 * rollups.
 */
const NONCE_CHECK_DISTANCE = 64n;
/** CHOICE: two checks of a transaction that is no longer in its block are this many blocks apart. */
const BLOCK_CHECK_DISTANCE = 5n;
/** A node that is behind another by less than this lags. A larger distance is a contradiction. */
const LAG_BLOCKS = 64n;

interface Sent {
  readonly hash: string;
  readonly sender: string;
  readonly nonce: bigint;
  /** Whether its nonce belongs to a separate lane, which the transaction count of nodes does not include. */
  readonly hasOwnLane: boolean;
}

/** The status of a transaction as one node reports it. */
type NodeView =
  | { readonly kind: 'included'; readonly inclusion: Included; readonly finalBlock: bigint }
  /** The transaction is in its pool, or in a block whose receipt the node lacks. */
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
  /** The transaction count in the final block. Undefined if the node lacks the state of that block. */
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
    const isConsistent =
      isSame && views.every((each) => isConsistentWithLag(each, first.inclusion.blockNumber));
    if (!isConsistent) nodes.reportDisagreement(`the transaction \`${hash}\``);
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

/**
 * Returns whether a node's view is consistent with an inclusion in this block: the node also has the transaction in a
 * block, or it may not have reached this block yet, because it is behind by less than `LAG_BLOCKS`.
 */
function isConsistentWithLag(view: NodeView, blockNumber: bigint): boolean {
  if (view.kind === 'included' || (view.kind === 'known' && view.isInBlock)) return true;
  return view.head < blockNumber && blockNumber - view.head < LAG_BLOCKS;
}

async function statusOutsideBlocks(
  nodes: Nodes,
  sent: Sent,
  views: readonly NodeView[],
): Promise<ChainStatus> {
  const others = views.filter((each) => each.kind !== 'included');
  const observed = { at: lowest(others.map(({ head }) => head)), distance: BLOCK_CHECK_DISTANCE };
  const known = others.filter((each) => each.kind === 'known');
  if (known.some(({ isInBlock }) => isInBlock)) return { kind: 'undecided' };
  if (known.length > 0) return { kind: 'pending', observed };
  const counts = others.filter((each) => each.kind === 'unknown');
  if (sent.hasOwnLane || counts.every(({ count }) => count <= sent.nonce)) {
    return { kind: 'unknown', isExpired: false, observed };
  }
  const isUsed = ({ count, finalCount = count }: Counts): boolean =>
    count > sent.nonce && finalCount > sent.nonce;
  return counts.every(isUsed) ? statusOfUsedNonce(nodes, sent, counts) : { kind: 'undecided' };
}

/**
 * Returns the status of a transaction that no node has and whose nonce was used in a final block, according to all of
 * them.
 */
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
  // A node without the state of its final block returns the count of its newest block. That block must become final
  // first.
  const unfinal = counts.map(({ finalCount, head, finalBlock }) =>
    finalCount === undefined ? head - finalBlock : 0n,
  );
  return {
    kind: 'gone',
    as: 'replaced',
    observed: { at, distance: NONCE_CHECK_DISTANCE + highest(unfinal) },
  };
}

/**
 * Finds the transaction in a block up to `final` that used the sender's nonce. Returns undefined if the node lacks the
 * state of old blocks, or if an authorization (EIP-7702) used the nonce.
 */
async function userOfNonce(read: Read, { sender, nonce }: Sent, final: bigint): Promise<string | undefined> {
  const countAt = async (block: bigint): Promise<bigint> =>
    readQuantity('nonce', await read('eth_getTransactionCount', sender, toQuantity(block)));
  try {
    if ((await countAt(final)) <= nonce) return undefined;
    // INVARIANT: the nonce is used in block `used`, and not yet in block `unused`.
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
    const block = readRecord('block', await read('eth_getBlockByNumber', toQuantity(used), true));
    const user = readList('block', block.transactions)
      .map((each) => readRecord('transaction', each))
      .find(
        (each) => String(each.from).toLowerCase() === sender && readQuantity('nonce', each.nonce) === nonce,
      );
    return typeof user?.hash === 'string' ? user.hash.toLowerCase() : undefined;
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

async function viewOf(read: Read, sent: Sent): Promise<NodeView> {
  const inclusion = await inclusionOf(read, sent.hash);
  if (inclusion !== undefined) {
    const head = readQuantity('eth_blockNumber', await read('eth_blockNumber'));
    return { kind: 'included', inclusion, finalBlock: await finalBlockOf(read, head) };
  }
  const transaction = await read('eth_getTransactionByHash', sent.hash);
  const head = readQuantity('eth_blockNumber', await read('eth_blockNumber'));
  if (transaction !== null) {
    const { blockHash } = readRecord('transaction', transaction);
    return { kind: 'known', isInBlock: typeof blockHash === 'string', head };
  }
  const count = readQuantity('nonce', await read('eth_getTransactionCount', sent.sender, 'latest'));
  const finalBlock = await finalBlockOf(read, head);
  const isUsed = count > sent.nonce && !sent.hasOwnLane;
  const finalCount = isUsed ? await countIn(read, sent.sender, finalBlock) : count;
  return { kind: 'unknown', head, finalBlock, count, finalCount };
}

async function countIn(read: Read, sender: string, block: bigint): Promise<bigint | undefined> {
  if (block < 0n) return 0n;
  try {
    return readQuantity('nonce', await read('eth_getTransactionCount', sender, toQuantity(block)));
  } catch (error) {
    if (error instanceof NodeError) return undefined;
    throw error;
  }
}

async function inclusionOf(read: Read, hash: string): Promise<Included | undefined> {
  const answer = await read('eth_getTransactionReceipt', hash);
  if (answer === null) return undefined;
  const receipt = readRecord('receipt', answer);
  const blockNumber = readQuantity('blockNumber', receipt.blockNumber);
  const block = await read('eth_getBlockByHash', receipt.blockHash, false);
  // A reorganization removed the block in the meantime.
  if (block === null) return undefined;
  const gasPrice = readQuantity('effectiveGasPrice', receipt.effectiveGasPrice);
  // Rollups add the cost of publishing their data on layer 1.
  const l1Fee =
    receipt.l1Fee === undefined || receipt.l1Fee === null ? 0n : readQuantity('l1Fee', receipt.l1Fee);
  return {
    blockHash: String(receipt.blockHash).toLowerCase(),
    blockNumber,
    blockTimestampSeconds: Number(readQuantity('timestamp', readRecord('block', block).timestamp)),
    feePaid: readQuantity('gasUsed', receipt.gasUsed) * gasPrice + l1Fee,
    isSuccess: readQuantity('status', receipt.status) === 1n,
  };
}

/** Returns the number of the newest final block; negative while the chain has no final block. */
async function finalBlockOf(read: Read, head: bigint): Promise<bigint> {
  try {
    const block = await read('eth_getBlockByNumber', 'finalized', false);
    if (block !== null) return readQuantity('number', readRecord('block', block).number);
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

// Nodes return no error codes for these reasons. They are recognized by the message texts of geth, which other nodes
// adopted.
const messageTexts: readonly { readonly reason: BroadcastRefusal; readonly text: RegExp }[] = [
  { reason: 'stale', text: /nonce (is )?too low|old ?nonce/i },
  {
    reason: 'insufficient_funds',
    text: /insufficient funds|insufficient ?balance|insufficient_?funds|exceeds account balance|doesn't have enough funds|lack of funds/i,
  },
  {
    reason: 'underpriced',
    text: /underpriced|fee ?too ?low|less than (the )?(block )?base fee|gas price (is )?(too low|below)|fee cap less than|tip too low/i,
  },
  { reason: 'reverts', text: /execution reverted|revert|out of gas|invalid opcode|gas required exceeds/i },
];

/** Returns whether the node already has the transaction, which counts as a successful broadcast. */
export function isAlreadyKnown({ message }: NodeError): boolean {
  return /already known|already imported|known transaction|already in (the )?mempool|alreadyknown/i.test(
    message,
  );
}

/** Maps a node's error to a refusal reason of the port. Any other error is `invalid`. */
export function classifyRefusal(error: NodeError): { reason: BroadcastRefusal; message: string } {
  const revert = revertReason(error);
  if (revert !== undefined) return { reason: 'reverts', message: revert };
  const known = messageTexts.find(({ text }) => text.test(error.message));
  return { reason: known?.reason ?? 'invalid', message: error.message };
}

/**
 * Returns the reason why a call reverted, including the contract's revert reason if there is one. Returns undefined
 * when it did not revert.
 */
export function revertReason({ code, message, data }: NodeError): string | undefined {
  if (code !== 3 && !saysReverted(message.toLowerCase())) return undefined;
  const hex = typeof data === 'string' ? data : undefined;
  // The selector of `Error(string)`.
  if (hex?.startsWith('0x08c379a0') !== true) return message;
  try {
    const [reason] = AbiParameters.decode(AbiParameters.from('string'), `0x${hex.slice(10)}`);
    return cutText(`execution reverted: ${reason}`);
  } catch {
    return message;
  }
}

function saysReverted(message: string): boolean {
  if (message.includes('execution reverted')) return true;
  const start = message.indexOf('vm execution error');
  return start >= 0 && message.indexOf('revert', start) >= 0;
}

// The codes of EIP-1474, and the codes of nodes that have the method but do not offer it.
const NOT_SERVED = new Set([-32601, -32004]);

/**
 * Simulates calls one after the other with `eth_simulateV1`. If the node lacks this method, simulates only the first
 * call, with `simulateOne`.
 */
export async function simulateSequence(
  nodes: Nodes,
  calls: readonly EvmCall[],
  simulateOne: (call: EvmCall) => Promise<Simulation>,
): Promise<SequenceSimulation> {
  const [only] = calls;
  if (only === undefined) return { succeeds: true, units: [] };
  const answer = calls.length === 1 ? undefined : await simulateAll(nodes, calls);
  if (answer !== undefined) return answer;
  const first = await simulateOne(only);
  if (!first.succeeds) return { ...first, index: 0 };
  return { succeeds: true, units: calls.map((_, index) => (index === 0 ? first.units : undefined)) };
}

/** Returns undefined when the node does not offer the method. */
async function simulateAll(nodes: Nodes, calls: readonly EvmCall[]): Promise<SequenceSimulation | undefined> {
  let blocks: readonly unknown[];
  try {
    const question = { blockStateCalls: [{ calls: calls.map(toRpcCall) }], validation: false };
    blocks = readList('eth_simulateV1', await nodes.read('eth_simulateV1', question, 'latest'));
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    if (NOT_SERVED.has(error.code)) return undefined;
    // The node refuses the whole block, for example because the sender cannot pay the value of a call.
    return { succeeds: false, index: 0, ...classifyRefusal(error) };
  }
  const results = readList('eth_simulateV1', readRecord('eth_simulateV1', blocks[0]).calls);
  const units: bigint[] = [];
  for (const index of calls.keys()) {
    const result = readRecord('eth_simulateV1', results[index]);
    if (readQuantity('eth_simulateV1', result.status) !== 1n) {
      return { succeeds: false, index, ...refusalOf(result.error) };
    }
    units.push(limitFor(readQuantity('eth_simulateV1', result.gasUsed)));
  }
  return { succeeds: true, units };
}

/**
 * Returns the gas limit for the gas that a call used. Refunds, at most a fifth of the used gas, are paid only after the
 * execution (EIP-3529), and each nested call keeps back 1/64 (EIP-150). Unused gas is not paid.
 */
function limitFor(gasUsed: bigint): bigint {
  return (gasUsed * 4n) / 3n;
}

function toRpcCall({ from, to, value, data }: EvmCall): object {
  return {
    from,
    ...(to === undefined ? {} : { to }),
    value: `0x${value.toString(16)}`,
    ...(data.length === 0 ? {} : { input: bytesTo0xHex(data) }),
  };
}

function refusalOf(error: unknown) {
  const { code, message, data } = readRecord('eth_simulateV1', error ?? {});
  return classifyRefusal(new NodeError(Number(code ?? 3), String(message ?? 'execution reverted'), data));
}
