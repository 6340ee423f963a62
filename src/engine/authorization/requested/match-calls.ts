import { bytesToBase58, equalBytes } from '../../crypto/encoding.ts';
import { type BatchCall, decodeCanonicalBatch, encodeBatch } from '../../signing/ethereum/batch-executor.ts';
import { encodeAccountCalls } from '../../signing/ethereum/smart-accounts.ts';
import { parseEvmAddress, parseHexBytes, parseQuantity, type Quantity } from '../../signing/fields.ts';
import { parseSolanaWire } from '../../signing/solana/signer.ts';
import { decodeSolanaTransaction, withFeePayer } from '../../signing/solana/wire.ts';
import { completedOnEthereum, type Fields } from './completed-fields.ts';
import type { SignTask } from './match-task.ts';

// The signer builds the transactions and calls of a body itself, and compares them with the signing task.

type RequestedCallsFields = Readonly<Record<string, unknown>>;

/** Returns the calls of an RPC body: the calls of a batch, or the single call of a sponsored transaction. */
function callsOf({
  method,
  params,
  experimental_data_suffix: suffix,
}: RequestedCallsFields): readonly BatchCall[] {
  const { calls, transaction } = params as { calls?: unknown; transaction?: unknown };
  const asked = method === 'wallet_sendCalls' ? calls : [transaction];
  const read = (asked as readonly RequestedCallsFields[]).map(callOf);
  const last = read.at(-1);
  if (last === undefined || typeof suffix !== 'string') return read;
  const data = Buffer.concat([last.data, parseHexBytes(suffix, '/experimental_data_suffix')]);
  return [...read.slice(0, -1), { ...last, data }];
}

function callOf({ to, value, data }: RequestedCallsFields): BatchCall {
  return {
    to: parseEvmAddress(String(to), '/to'),
    value: value === undefined ? 0n : parseQuantity(value as Quantity, '/value', 256),
    data: parseHexBytes(typeof data === 'string' ? data : '0x', '/data'),
  };
}

/** Returns whether the chain id belongs to the chain that the body names. */
export function isOfChain({ caip2 }: RequestedCallsFields, chainId: unknown): boolean {
  return caip2 === `eip155:${parseQuantity(chainId as Quantity, '/chain_id', 256)}`;
}

/** The fields that the transaction of a batch may have. `to` is the account itself. */
const batchFields: ReadonlySet<string> = new Set([
  ...['to', 'data', 'type', 'chain_id', 'from', 'nonce', 'gas_limit', 'gas_price', 'max_fee_per_gas'],
  // An authorization counts only for the account that signed it.
  ...['max_priority_fee_per_gas', 'authorization_list'],
]);

/** Returns whether this is the transaction from the account to itself that runs the calls of the body. */
export function isBatchOf(body: RequestedCallsFields, transaction: RequestedCallsFields): boolean {
  const { experimental_data_suffix: suffix, ...plain } = body;
  const batch = Buffer.from(encodeBatch(callsOf(plain))).toString('hex');
  const expected = `0x${batch}${typeof suffix === 'string' ? suffix.slice(2) : ''}`;
  return (
    isOfChain(body, transaction.chain_id) &&
    Object.entries(transaction).every(([name, value]) => value === undefined || batchFields.has(name)) &&
    String(transaction.data).toLowerCase() === expected.toLowerCase()
  );
}

/**
 * Returns whether this is a user operation that runs the calls of the body and nothing else.
 *
 * NOTE: a factory's data is a call too: if the account is delegated, the entry point calls the account with it.
 */
export function isOperationOf(
  body: RequestedCallsFields,
  { chain_id: chainId, user_operation: operation }: RequestedCallsFields,
): boolean {
  const { call_data: callData, factory } = operation as RequestedCallsFields;
  if (factory !== undefined) return false;
  const expected = encodeAccountCalls(callsOf(body));
  const given = parseHexBytes(String(callData), '/user_operation/call_data');
  return isOfChain(body, chainId) && Buffer.compare(expected, given) === 0;
}

/**
 * Returns whether this is the Solana transaction of the request, with a recent blockhash in place of the placeholder,
 * and with a fee payer if it is sponsored.
 */
export function isSolanaOf({ sponsor, params }: RequestedCallsFields, given: RequestedCallsFields): boolean {
  const signed = decodeSolanaTransaction(parseSolanaWire(String(given.transaction)));
  const asked = parseSolanaWire(String((params as RequestedCallsFields).transaction)).slice();
  const [feePayer] = signed.staticKeys;
  const wire = sponsor === true && feePayer ? withFeePayer(asked, bytesToBase58(feePayer)) : asked;
  const expected = decodeSolanaTransaction(wire);
  // The decoded fields share memory with the wire bytes, so this also changes the transaction.
  if (expected.recentBlockhash.every((byte) => byte === 0))
    expected.recentBlockhash.set(signed.recentBlockhash);
  return Buffer.compare(expected.message, signed.message) === 0;
}

/** The calls that an EVM signing task makes. */
export interface SignedCalls {
  readonly caip2: string;
  /** Recipients are in lower case. */
  readonly calls: readonly BatchCall[];
  /** The account that makes the calls, if the task names it. */
  readonly account?: string | undefined;
}

const named: ReadonlySet<string> = new Set(['to', 'value', 'data', ...completedOnEthereum]);

/**
 * Returns the call of a transaction, or the calls of a batch that an account runs through a transaction to itself.
 * Returns undefined for a task that does anything else or anything more.
 *
 * NOTE: user operations and delegations are not read, because only a server with a paymaster builds them.
 */
export function signedCalls({ method, params }: SignTask): SignedCalls | undefined {
  if (method !== 'eth_signTransaction') return undefined;
  const { transaction } = params as { readonly transaction: Fields };
  const { to, value = 0, data = '0x', chain_id: chainId } = transaction;
  const isKnown = ([name, given]: [string, unknown]) => given === undefined || named.has(name);
  if (!Object.entries(transaction).every(isKnown) || typeof to !== 'string') return undefined;
  // Without a chain, the transaction is valid on every chain.
  if (chainId === undefined) return undefined;
  const call = {
    to: to.toLowerCase(),
    value: parseQuantity(value as Quantity, '/transaction/value', 256),
    data: parseHexBytes(String(data), '/transaction/data'),
  };
  const caip2 = caip2Of(chainId);
  // This is stricter than the smart contract, because calls that share their bytes could expand to more data than fits
  // into memory.
  const batch = decodeCanonicalBatch(call.data);
  if (batch === undefined) return { caip2, calls: [call] };
  const isPlain = call.value === 0n && equalBytes(encodeBatch(batch), call.data);
  return isPlain ? { caip2, calls: batch, account: to } : undefined;
}

function caip2Of(chainId: unknown): string {
  return `eip155:${parseQuantity(chainId as Quantity, '/chain_id', 256)}`;
}
