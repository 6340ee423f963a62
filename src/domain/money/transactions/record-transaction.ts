import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { decimalText } from '../../../engine/assets/decimal.ts';
import { bytesToHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import type { ActionUnit } from '../../../engine/policy/action.ts';
import { decodeSponsoredOperation } from '../../../engine/signing/ethereum/user-operation.ts';
import { tronAddressText } from '../../../engine/signing/tron/signer.ts';
import type { Inclusion } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { noteTransaction, recordEvent } from '../../base/events/events.ts';
import type { Tables } from '../../tables.ts';
import { costInUsd } from '../gas-spend/gas-spend.ts';
import { releasedStatuses, TransactionEntity, type TransactionRow } from './transaction.entity.ts';

/** A transfer of one asset from a wallet to one receiver. */
interface PlainTransfer {
  /** The token's smart contract or mint in the notation of the chain type; null for the native asset. */
  readonly tokenAddress: string | null;
  readonly recipient: string;
  /** The amount in base units. */
  readonly rawAmount: bigint;
}

// Programs whose instructions move no assets. They commonly accompany a Solana transfer.
const BESIDE_TRANSFERS = new Set([
  'ComputeBudget111111111111111111111111111111',
  'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
  'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL',
]);

/**
 * Reads the transfer that a transaction of a wallet makes from the units that policies evaluate. Returns undefined
 * unless the transaction is exactly one transfer of one asset.
 *
 * NOTE: on Solana, the receiver of a token is a token account. The bytes do not contain its owner.
 */
export function plainTransferOf(units: readonly ActionUnit[]): PlainTransfer | undefined {
  const moving = units.filter(({ solanaInstruction: instruction }) => {
    const program = instruction?.programId;
    return typeof program !== 'string' || !BESIDE_TRANSFERS.has(program);
  });
  const [unit] = moving;
  if (unit === undefined || moving.length !== 1) return undefined;
  if (unit.ethereumCall !== undefined) return transferOfCall(unit.ethereumCall);
  if (unit.solanaInstruction !== undefined) return transferOfInstruction(unit.solanaInstruction);
  return unit.tronContract === undefined ? undefined : transferOfContract(unit.tronContract);
}

function transferOfCall({
  to,
  value,
  data,
}: NonNullable<ActionUnit['ethereumCall']>): PlainTransfer | undefined {
  if (to === undefined) return undefined;
  if (data.length === 0) return { tokenAddress: null, recipient: to, rawAmount: value };
  const token = value === 0n ? readTokenTransfer(data) : undefined;
  return token && { tokenAddress: to, recipient: `0x${token.recipientHex}`, rawAmount: token.rawAmount };
}

function transferOfInstruction({
  program,
  name,
  fields,
}: NonNullable<ActionUnit['solanaInstruction']>): PlainTransfer | undefined {
  const { to, lamports, mint, destination, amount } = fields;
  if (program === 'system' && name === 'Transfer') {
    if (typeof to !== 'string' || typeof lamports !== 'bigint') return undefined;
    return { tokenAddress: null, recipient: to, rawAmount: lamports };
  }
  if (program !== 'token' || name !== 'TransferChecked') return undefined;
  if (typeof mint !== 'string' || typeof destination !== 'string' || typeof amount !== 'bigint') {
    return undefined;
  }
  return { tokenAddress: mint, recipient: destination, rawAmount: amount };
}

function transferOfContract({
  type,
  fields,
  data,
}: NonNullable<ActionUnit['tronContract']>): PlainTransfer | undefined {
  const { to_address: to, amount, contract_address: contract, call_value: value } = fields;
  if (type === 'TransferContract' && typeof to === 'string' && typeof amount === 'bigint') {
    return { tokenAddress: null, recipient: tronText(to), rawAmount: amount };
  }
  const token =
    data === undefined || (value !== undefined && value !== 0n) ? undefined : readTokenTransfer(data);
  if (token === undefined || typeof contract !== 'string') return undefined;
  const recipient = tronText(`41${token.recipientHex}`);
  return { tokenAddress: tronText(contract), recipient, rawAmount: token.rawAmount };
}

function tronText(hexAddress: string): string {
  return tronAddressText(hexToBytes(hexAddress));
}

// transfer(address,uint256): selector || 12 zero bytes || address || amount
const TRANSFER = /^a9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})$/;

function readTokenTransfer(data: Uint8Array): { recipientHex: string; rawAmount: bigint } | undefined {
  const [, recipientHex, amountHex] = TRANSFER.exec(bytesToHex(data)) ?? [];
  if (recipientHex === undefined) return undefined;
  return { recipientHex, rawAmount: BigInt(`0x${amountHex}`) };
}

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

/** An EIP-7702 authorization in a transaction. It uses a nonce of the account that signed it. */
export interface HeldAuthorization {
  /** The account that signed it, in the notation of wallet addresses. */
  readonly authority: string;
  readonly nonce: number;
  /** The delegate as 0x hex, lower case. */
  readonly contract: string;
}

/** A signed transaction to store. */
interface SignedTransaction {
  readonly caip2: string;
  readonly sender: string;
  readonly method: string;
  readonly hash: string;
  readonly signedBytes: Uint8Array;
  readonly nonce?: number | undefined;
  /**
   * The id of the earlier transaction that must reach the chain first, if there is one. It belongs to the same wallet
   * action or has a lower nonce.
   */
  readonly afterTransactionId?: string | undefined;
  /** The authorizations that use a nonce when the transaction is included, if any. */
  readonly authorizations?: readonly HeldAuthorization[] | undefined;
  readonly referenceId?: string | undefined;
  /** The signed transaction, with the field names of the API document. Only on EVM chains. */
  readonly transactionRequest?: object | undefined;
  readonly plainTransfer?: PlainTransfer | undefined;
  /** Whether `hash` is the hash of a user operation, whose transaction has no hash yet. */
  readonly isOperation?: boolean | undefined;
  /** Whether a party other than the wallet pays the gas. */
  readonly isSponsored?: boolean | undefined;
  /** Whether the request itself broadcasts the transaction. If not, the job does so immediately. */
  readonly isBroadcastHere: boolean;
}

/** How long the job leaves the broadcast of a transaction to the request that signed it. */
export const REQUEST_LEASE_MS = 15_000;

/**
 * Stores a signed transaction in the database transaction that signed it. Once that is committed, the transaction is
 * broadcast even if this process dies.
 */
export async function recordTransaction(
  context: Pick<OperationContext, 'app' | 'em' | 'ids' | 'notes' | 'nowMs' | 'processId'>,
  walletId: string,
  signed: SignedTransaction,
): Promise<TransactionRow> {
  const { nowMs } = context;
  const { plainTransfer: moved } = signed;
  const row: TransactionRow = {
    id: context.ids.cuid2(),
    app_id: context.app.id,
    wallet_id: walletId,
    caip2: signed.caip2,
    sender: signed.sender,
    method: signed.method,
    status: 'pending',
    transaction_hash: signed.isOperation === true ? null : signed.hash,
    user_operation_hash: signed.isOperation === true ? signed.hash : null,
    is_sponsored: signed.isSponsored === true ? 1 : 0,
    reference_id: signed.referenceId ?? null,
    after_transaction_id: signed.afterTransactionId ?? null,
    nonce: signed.nonce ?? null,
    signed_bytes: Buffer.from(signed.signedBytes),
    transaction_request:
      signed.transactionRequest === undefined ? null : JSON.stringify(signed.transactionRequest),
    moved_token: moved === undefined ? null : (moved.tokenAddress ?? 'native'),
    moved_to: moved?.recipient ?? null,
    moved_amount: moved === undefined ? null : String(moved.rawAmount),
    block_number: null,
    block_timestamp_seconds: null,
    fee_paid: null,
    failure_reason: null,
    is_slow_told: 0,
    are_funds_told: 0,
    is_gas_told: 0,
    doubt: null,
    created_at_ms: nowMs,
    updated_at_ms: nowMs,
    next_check_at_ms: signed.isBroadcastHere ? nowMs + REQUEST_LEASE_MS : nowMs,
  };
  const database = context.em.getKysely<Tables>();
  await database
    .insertInto('transactions')
    .values({ ...row, claimed_by: context.processId })
    .execute();
  const { authorizations = [], caip2 } = signed;
  if (authorizations.length > 0) {
    const held = authorizations.map((each, position) => ({
      ...each,
      transaction_id: row.id,
      position,
      caip2,
    }));
    await database.insertInto('transaction_authorizations').values(held).execute();
  }
  noteTransaction(context.notes, row.id);
  return row;
}

/** Returns the id of the sender's transaction with this hash, unless it can no longer be included. */
export async function findSent(
  { em }: Pick<OperationContext, 'em'>,
  { caip2, sender, hash }: Pick<SignedTransaction, 'caip2' | 'sender' | 'hash'>,
): Promise<string | undefined> {
  const row = await em.findOne(
    TransactionEntity,
    { caip2, transactionHash: hash, sender, status: { $nin: [...releasedStatuses] } },
    { fields: ['id'], disableIdentityMap: true },
  );
  return row?.id;
}

type GasContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs' | 'prices'>;

/** The `source_type` of a cost event, by the method of the transaction; `rpc` for all others. */
const sourceTypes: Readonly<Record<string, string>> = {
  transfer: 'wallet-action-transfer',
  swap: 'wallet-action-swap',
};

/**
 * Records the app's cost of a sponsored transaction, and the completion of a user operation, once it is included.
 * They are recorded only once, even if a reorganization follows.
 */
export async function recordGasCost(
  context: GasContext,
  row: TransactionRow,
  inclusion: Inclusion,
): Promise<void> {
  if (row.is_sponsored === 0 || row.is_gas_told === 1) return;
  if (inclusion.operation !== undefined) {
    await recordEvent(context, {
      appId: row.app_id,
      type: 'user_operation.completed',
      payload: completedOf(row, inclusion),
    });
  }
  await recordEvent(context, {
    appId: row.app_id,
    type: 'usage.gas_sponsorship.recorded',
    payload: {
      event_id: context.ids.cuid2(),
      amount_usd: decimalText(await costInUsd(context, [{ caip2: row.caip2, fee: inclusion.feePaid }])),
      recorded_at: context.nowMs,
      source_type: sourceTypes[row.method] ?? 'rpc',
      source_id: row.id,
    },
  });
  await context.em.nativeUpdate(TransactionEntity, { id: row.id }, { isGasTold: 1 });
}

function completedOf(row: TransactionRow, { blockNumber, feePaid, operation }: Inclusion) {
  const { user_operation: sent } = decodeSponsoredOperation(row.signed_bytes);
  return {
    user_op_hash: row.user_operation_hash,
    sender: row.sender,
    paymaster: sent.paymaster === undefined ? null : normalizeAddress(sent.paymaster),
    nonce: String(BigInt(sent.nonce)),
    success: row.status !== 'execution_reverted',
    actual_gas_cost: String(feePaid),
    actual_gas_used: String(operation?.gasUsed),
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    block_number: Number(blockNumber),
    log_index: operation?.logIndex,
  };
}
