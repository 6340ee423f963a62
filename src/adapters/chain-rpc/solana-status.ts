import { bytesToBase58 } from '../../engine/crypto/encoding.ts';
import { decodeSolanaTransaction, type SolanaTransaction } from '../../engine/signing/solana/wire.ts';
import type { BroadcastRefusal, ChainStatus, Inclusion } from '../../ports/chains.ts';
import { cutText, type NodeError, readInteger, readList, readRecord, readText } from './endpoint.ts';
import type { Nodes, Read } from './nodes.ts';

const SYSTEM_PROGRAM = '11111111111111111111111111111111';
const PREFLIGHT_FAILED = -32002;
/** The error SystemError::ResultWithNegativeLamports. */
const NEGATIVE_LAMPORTS = 1;

// The reasons by the name of TransactionError. All others are `invalid`. Source: solana-transaction-error.
const reasons: Readonly<Record<string, BroadcastRefusal>> = {
  AccountNotFound: 'insufficient_funds',
  BlockhashNotFound: 'stale',
  InsufficientFundsForFee: 'insufficient_funds',
  InsufficientFundsForRent: 'reverts',
  InvalidRentPayingAccount: 'reverts',
  InstructionError: 'reverts',
  ProgramAccountNotFound: 'reverts',
};

/** Returns whether the transaction was already processed, which counts as a successful broadcast. */
export function isAlreadyKnown({ data, message }: NodeError): boolean {
  return (
    nameOf((data as { err?: unknown } | undefined)?.err) === 'AlreadyProcessed' ||
    /already been processed/i.test(message)
  );
}

/** Maps a node's error to a refusal reason of the port. */
export function classifyRefusal(
  error: NodeError,
  wire: Uint8Array,
): { reason: BroadcastRefusal; message: string } {
  const { err, logs } = (error.data ?? {}) as { err?: unknown; logs?: unknown };
  if (error.code === PREFLIGHT_FAILED && err !== undefined) return classifyFailure(err, logs, wire);
  return { reason: 'invalid', message: error.message };
}

/** Maps a TransactionError to a refusal reason of the port. The message includes the last error line of the logs. */
export function classifyFailure(
  err: unknown,
  logs: unknown,
  wire: Uint8Array,
): { reason: BroadcastRefusal; message: string } {
  const name = nameOf(err) ?? 'unknown error';
  const reason = isShortfall(err, wire) ? 'insufficient_funds' : (reasons[name] ?? 'invalid');
  const logLine = Array.isArray(logs)
    ? logs.map((line) => cutText(String(line))).findLast((line) => /failed|error|insufficient/i.test(line))
    : undefined;
  const detail =
    name === 'InstructionError'
      ? JSON.stringify((err as { InstructionError: unknown }).InstructionError)
      : undefined;
  const parts = [name, detail, logLine].filter((part) => part !== undefined);
  return { reason, message: cutText(parts.join(': ')) };
}

/** Reads the name in `"Name"` or `{"Name": …}`. */
function nameOf(err: unknown): string | undefined {
  if (typeof err === 'string') return err;
  return typeof err === 'object' && err !== null ? Object.keys(err)[0] : undefined;
}

/** Returns whether a transfer of the system program exceeded the sender's lamports. */
function isShortfall(err: unknown, wire: Uint8Array): boolean {
  const failure = (err as { InstructionError?: unknown } | null)?.InstructionError;
  if (!Array.isArray(failure)) return false;
  const [index, cause] = failure as [number, { Custom?: number } | string];
  if (typeof cause !== 'object' || cause.Custom !== NEGATIVE_LAMPORTS) return false;
  const { instructions, staticKeys } = decodeSolanaTransaction(wire);
  const program = staticKeys[instructions[index]?.programIndex ?? -1];
  return program !== undefined && bytesToBase58(program) === SYSTEM_PROGRAM;
}

/*
 * Determines the status of a transaction. As on EVM chains, an inclusion counts only if every node that responds
 * reports the same one. An expiry counts only after several checks, because a node that lags does not know a new
 * blockhash either.
 */

/**
 * CHOICE: checks of an expired blockhash are this many slots apart, about two minutes. A blockhash is valid for 150
 * blocks, so a blockhash that was still unknown at the first check is no longer valid at the second.
 */
const EXPIRY_CHECK_DISTANCE = 300n;
/** CHOICE: two checks of a transaction that is no longer in its block are this many slots apart. */
const BLOCK_CHECK_DISTANCE = 32n;
/** A node that is behind another by less than this lags. A larger distance is a contradiction. */
const LAG_SLOTS = 150n;

const SOLANA_STATUS_SYSTEM_PROGRAM = '11111111111111111111111111111111';
/** SystemInstruction::AdvanceNonceAccount. */
const ADVANCE_NONCE = 4;
/**
 * The offset of the stored blockhash in a nonce account, which is version u32 || state u32 || authority 32 || blockhash
 * 32 || fee u64.
 */
const NONCE_OFFSET = 40;

/** The status of a transaction as one node reports it. */
type NodeView =
  | { readonly kind: 'included'; readonly inclusion: Inclusion; readonly failure: unknown; isFinal: boolean }
  | { readonly kind: 'known'; readonly slot: bigint }
  | { readonly kind: 'unknown'; readonly slot: bigint; readonly isExpired: boolean };

export async function solanaStatusOf(
  nodes: Nodes,
  hash: string,
  signedBytes: Uint8Array,
): Promise<ChainStatus> {
  const sent = decodeSolanaTransaction(signedBytes);
  const views = await nodes.readAll((read) => viewOf(read, hash, sent));
  const included = views.filter((each) => each.kind === 'included');
  const [first] = included;
  if (first === undefined) return statusOutsideBlocks(views);
  const { inclusion, failure } = first;
  const isSame = new Set(included.map(keyOf)).size === 1;
  if (!isSame || included.length < views.length) {
    const isConsistent = views.every((each) => isConsistentWithLag(each, inclusion.blockNumber));
    if (!isSame || !isConsistent) nodes.reportDisagreement(`the transaction \`${hash}\``);
    return { kind: 'undecided' };
  }
  const isFinal = included.every((each) => each.isFinal);
  if (failure === null) return { kind: 'included', isFinal, ...inclusion };
  const reason = classifyFailure(failure, undefined, signedBytes).message;
  return { kind: 'reverted', isFinal, reason, ...inclusion };
}

function keyOf({ inclusion: { blockNumber, feePaid }, failure }: NodeView & { kind: 'included' }): string {
  return JSON.stringify([String(blockNumber), String(feePaid), failure]);
}

/**
 * Returns whether a node's view is consistent with an inclusion in this slot: the node also knows the transaction, or
 * it may not have reached this slot yet, because it is behind by less than `LAG_SLOTS`.
 */
function isConsistentWithLag(view: NodeView, slot: bigint): boolean {
  return view.kind !== 'unknown' || (view.slot < slot && slot - view.slot < LAG_SLOTS);
}

function statusOutsideBlocks(views: readonly NodeView[]): ChainStatus {
  const others = views.filter((each) => each.kind !== 'included');
  const at = others.map(({ slot }) => slot).reduce((one, other) => (other < one ? other : one));
  const observed = { at, distance: BLOCK_CHECK_DISTANCE };
  if (others.some(({ kind }) => kind === 'known')) return { kind: 'pending', observed };
  const isExpired = others.every((each) => each.kind === 'unknown' && each.isExpired);
  if (!isExpired) return { kind: 'unknown', isExpired: false, observed };
  return { kind: 'gone', as: 'expired', observed: { at, distance: EXPIRY_CHECK_DISTANCE } };
}

async function viewOf(read: Read, hash: string, sent: SolanaTransaction): Promise<NodeView> {
  const method = 'getSignatureStatuses';
  const answer = await read(method, [hash], { searchTransactionHistory: true });
  const [found] = readList(method, readRecord(method, answer).value);
  const slot = readInteger('getSlot', await read('getSlot', { commitment: 'finalized' }));
  if (found === null || found === undefined) {
    return { kind: 'unknown', slot, isExpired: await isExpired(read, sent) };
  }
  const status = readRecord(method, found);
  const inclusion = status.confirmationStatus === 'processed' ? undefined : await inclusionOf(read, hash);
  if (inclusion === undefined) return { kind: 'known', slot };
  return {
    kind: 'included',
    inclusion,
    failure: status.err ?? null,
    // For old transactions, nodes return only `confirmations`, where null means rooted.
    isFinal: status.confirmationStatus === 'finalized' || status.confirmations === null,
  };
}

/** Reads where a transaction was included. Returns undefined if the node does not have the block yet. */
async function inclusionOf(read: Read, hash: string): Promise<Inclusion | undefined> {
  const method = 'getTransaction';
  const options = { commitment: 'confirmed', encoding: 'base64', maxSupportedTransactionVersion: 0 };
  const found = await read(method, hash, options);
  if (found === null) return undefined;
  const answer = readRecord(method, found);
  const { fee } = readRecord(method, answer.meta);
  return {
    blockNumber: readInteger(method, answer.slot),
    blockTimestampSeconds: Number(answer.blockTime ?? 0),
    feePaid: readInteger(method, fee),
  };
}

/** Returns whether, according to the node, the transaction can no longer be included. */
async function isExpired(read: Read, sent: SolanaTransaction): Promise<boolean> {
  const blockhash = bytesToBase58(sent.recentBlockhash);
  const nonceAccount = nonceAccountOf(sent);
  if (nonceAccount !== undefined) return (await storedNonce(read, nonceAccount)) !== blockhash;
  const method = 'isBlockhashValid';
  const answer = readRecord(method, await read(method, blockhash, { commitment: 'confirmed' }));
  return answer.value === false;
}

/** Returns the account of a durable nonce. Its transactions do not expire before the nonce is advanced. */
function nonceAccountOf({ instructions, staticKeys }: SolanaTransaction): string | undefined {
  const [first] = instructions;
  const program = staticKeys[first?.programIndex ?? -1];
  const account = staticKeys[first?.accountIndexes[0] ?? -1];
  if (first === undefined || program === undefined || account === undefined) return undefined;
  const { data } = first;
  const isAdvance = data.length >= 4 && Buffer.from(data).readUInt32LE(0) === ADVANCE_NONCE;
  return isAdvance && bytesToBase58(program) === SOLANA_STATUS_SYSTEM_PROGRAM
    ? bytesToBase58(account)
    : undefined;
}

async function storedNonce(read: Read, address: string): Promise<string | undefined> {
  const method = 'getAccountInfo';
  const options = { encoding: 'base64', commitment: 'finalized' };
  const { value } = readRecord(method, await read(method, address, options));
  if (value === null) return undefined;
  const [encoded] = readList(method, readRecord(method, value).data);
  const data = Buffer.from(readText(method, encoded), 'base64');
  return bytesToBase58(data.subarray(NONCE_OFFSET, NONCE_OFFSET + 32));
}
