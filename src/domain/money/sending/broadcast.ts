import { FeeAboveCeilingError } from '../../../engine/actions/filled-fees.ts';
import { NotComparableError } from '../../../engine/authorization/requested/built-part.ts';
import type { PolicyAction } from '../../../engine/policy/action.ts';
import type { SigningMethod, SigningMethods } from '../../../engine/signing/sign-with-key.ts';
import { ApiError } from '../../../errors.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Authorization } from '../../access/owners/require-authorization.ts';
import { signWithWalletKey } from '../../wallets/wallet-uses/use-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import {
  advanceTransaction,
  carrierOf,
  EARLIER_NEVER_CAME,
  type Finding,
  failed,
  findStale,
} from '../transactions/follow-transaction.ts';
import {
  findSent,
  type HeldAuthorization,
  plainTransferOf,
  recordTransaction,
} from '../transactions/record-transaction.ts';
import { neverHasEffect, type TransactionRow } from '../transactions/transaction.entity.ts';
import { requireKnownAccount } from './accounts-after-restore.ts';
import { chainRefusal } from './call-chain.ts';

type BroadcastContext = Pick<OperationContext, 'chains' | 'inUnit' | 'ids' | 'nowMs' | 'log' | 'prices'>;

/**
 * Broadcasts a recorded transaction after the database transaction that signed it has committed.
 *
 * CHOICE: when the chain cannot be reached, or its response cannot be stored, the request still succeeds and the
 * transaction stays `pending`. Its bytes are stored, and the job sends them until the chain responds. After an error,
 * callers would send a second transaction, and both could be included.
 *
 * @returns whether the chain is known to have accepted the transaction.
 * @throws ApiError insufficient_funds, transaction_execution_failure, transaction_broadcast_failure when the chain
 * refuses it. The transaction then becomes `failed` (a user operation: `provider_error`) and its nonce is free again,
 * or it becomes `replaced` if the nonce was already used.
 */
async function broadcastTransaction(
  context: BroadcastContext,
  chain: AnyChain,
  row: TransactionRow,
): Promise<boolean> {
  let refused: Error | undefined;
  let isAccepted = false;
  try {
    const outcome = await carrierOf(chain, row).broadcast(row.signed_bytes);
    let finding: Finding = { status: 'broadcasted', isSettled: false };
    if (!outcome.isAccepted) {
      finding =
        outcome.reason === 'stale'
          ? ((await findStale(chain, row)) ?? failed(row, outcome.message))
          : failed(row, outcome.message);
      // This includes `replaced`: the chain refuses a nonce that another transaction has already used.
      if (neverHasEffect.has(finding.status)) refused = chainRefusal(outcome.reason, outcome.message);
    }
    await context.inUnit((em, notes) => advanceTransaction({ ...context, em, notes }, row, finding));
    isAccepted = outcome.isAccepted;
  } catch (err) {
    context.log.warn({ err, transaction: row.id }, 'failed to broadcast a transaction; the job will retry');
  }
  if (refused !== undefined) throw refused;
  return isAccepted;
}

/**
 * Broadcasts transactions that build on each other. Each is sent only once the chain has accepted the previous one. If
 * the chain cannot be reached, the job sends the rest. If the chain refuses one, the later ones can no longer take
 * effect and end as well.
 *
 * @throws what `broadcastTransaction` throws.
 */
async function broadcastInOrder(
  context: BroadcastContext,
  transactions: readonly { readonly chain: AnyChain; readonly row: TransactionRow }[],
): Promise<void> {
  for (const [index, { chain, row }] of transactions.entries()) {
    try {
      if (!(await broadcastTransaction(context, chain, row))) return;
    } catch (refusal) {
      await endUnsent(
        context,
        transactions.slice(index + 1).map((later) => later.row),
      );
      throw refusal;
    }
  }
}

/** Ends transactions that were never sent. If this fails, the job ends them later. */
async function endUnsent(context: BroadcastContext, rows: readonly TransactionRow[]): Promise<void> {
  try {
    await context.inUnit(async (em, notes) => {
      for (const row of rows)
        await advanceTransaction({ ...context, em, notes }, row, failed(row, EARLIER_NEVER_CAME));
    });
  } catch (err) {
    context.log.warn({ err }, 'failed to end transactions that were not sent; the job will retry');
  }
}

/** A transaction that lacks only its signature. It is built in the database transaction that signs it. */
export interface BuiltTransaction {
  readonly chain: AnyChain;
  /** The action that policies evaluate, decoded from the bytes to be signed. */
  readonly action: PolicyAction;
  /** The sender's nonce. Undefined on chains without nonces, and for a nonce in a separate lane. */
  readonly nonce?: number | undefined;
  /** The id of the transaction with a lower nonce that must reach the chain first, if there is one. */
  readonly afterTransactionId?: string | undefined;
  /** The EIP-7702 authorizations in the transaction, if any. They use nonces of the sender or of other accounts. */
  readonly authorizations?: readonly HeldAuthorization[] | undefined;
  /** The signed transaction, with the field names of the API document. Only on EVM chains. */
  readonly request?: object | undefined;
  /** Set when another party pays the gas: the paymaster of a user operation, or a fee payer who also signs. */
  readonly sponsorship?: 'operation' | 'fee_payer';
  /**
   * Signs the transaction.
   *
   * @throws SigningInputError
   */
  sign(key: SigningKey): Promise<SignedBytes>;
}

/** The key of the wallet that sends a transaction. */
export interface SigningKey {
  sign<Method extends SigningMethod>(
    method: Method,
    params: SigningMethods[Method]['params'],
  ): Promise<SigningMethods[Method]['data']>;
}

export interface SignedBytes {
  readonly bytes: Uint8Array;
  /**
   * The hash in the notation of the chain type. For a user operation it is the operation's hash, because the
   * transaction does not exist yet.
   */
  readonly hash: string;
}

export interface SendOptions {
  /** The RPC method or wallet action that sends the transaction. */
  readonly method: string;
  readonly referenceId?: string | undefined;
  /** Whether to respond without waiting for the chain. The job then broadcasts the transaction. */
  readonly isOptimistic?: boolean | undefined;
}

/** The options for a transaction whose use of the wallet was authorized. */
interface AuthorizedSend extends SendOptions {
  readonly authorization: Authorization;
}

export interface SentTransaction extends SignedBytes {
  readonly transactionId: string;
  /** When the transaction was signed and stored, Unix ms. */
  readonly sentAtMs: number;
}

/**
 * Signs a built transaction, stores its bytes, and schedules the broadcast for after the commit.
 *
 * CHOICE: if an earlier transaction with a lower nonce may not have reached the chain, this one is not broadcast by the
 * request: it could wait for that nonce forever. The request succeeds, and the job broadcasts this transaction after
 * the earlier one. If the earlier one ends without effect, this one ends as `failed` without being sent.
 *
 * @throws ApiError transaction_broadcast_failure when the identical transaction was sent before; after the commit, what
 * `broadcastTransaction` throws.
 */
export async function sendBuilt(
  context: OperationContext,
  wallet: WalletRow,
  built: BuiltTransaction,
  options: AuthorizedSend,
): Promise<SentTransaction> {
  const { signed, row, isBroadcastHere } = await signBuilt(context, wallet, { built, options });
  if (isBroadcastHere) {
    context.afterCommit(async () => void (await broadcastTransaction(context, built.chain, row)));
  }
  return { ...signed, transactionId: row.id, sentAtMs: context.nowMs };
}

/** Builds the bytes of a transaction, in the database transaction that signs them. */
export type BuildTransaction = (context: OperationContext) => Promise<BuiltTransaction>;

/**
 * Signs and stores transactions that build on each other, one after the other so that their nonces are consecutive.
 * After the commit they are broadcast in this order. If the chain refuses one, the later ones end as well.
 *
 * @returns the signed transactions, in order.
 */
export async function sendInOrder(
  context: OperationContext,
  wallet: WalletRow,
  builds: readonly BuildTransaction[],
  options: Omit<AuthorizedSend, 'isOptimistic'>,
): Promise<readonly { readonly built: BuiltTransaction; readonly transactionId: string }[]> {
  const sent: (Signed & { readonly built: BuiltTransaction })[] = [];
  for (const build of builds) {
    // The nonce follows the nonces of the stored transactions.
    const built = await build(context);
    sent.push({ built, ...(await signBuilt(context, wallet, { built, options, before: sent.at(-1) })) });
  }
  const rows = sent.map(({ built, row }) => ({ chain: built.chain, row }));
  if (sent.every(({ isBroadcastHere }) => isBroadcastHere))
    context.afterCommit(() => broadcastInOrder(context, rows));
  return sent.map(({ built, row }) => ({ built, transactionId: row.id }));
}

interface Signed {
  readonly signed: SignedBytes;
  readonly row: TransactionRow;
  /** Whether the request broadcasts the transaction itself, instead of the job. */
  readonly isBroadcastHere: boolean;
}

/**
 * Signs a built transaction and stores it.
 *
 * @param before the previous transaction of the same action, on which this one builds.
 * @throws ApiError transaction_broadcast_failure when the identical transaction was sent before.
 */
async function signBuilt(
  context: OperationContext,
  wallet: WalletRow,
  {
    built,
    options,
    before,
  }: { built: BuiltTransaction; options: AuthorizedSend; before?: Signed | undefined },
): Promise<Signed> {
  const { chain } = built;
  const { method, referenceId, isOptimistic = false, authorization } = options;
  await requireKnownAccount(context, wallet, built);
  const signed = await built.sign({
    sign: (signingMethod, params) =>
      signWithWalletKey<typeof signingMethod>(context, wallet, authorization, {
        method: signingMethod,
        params,
      }).catch((error: unknown) => {
        throw asRefusal(error);
      }),
  });
  const identity = { caip2: chain.caip2, sender: wallet.address, hash: signed.hash };
  // User operations are never identical, because each has a random nonce.
  const isOperation = built.sponsorship === 'operation';
  const sentId = isOperation ? undefined : await findSent(context, identity);
  if (sentId !== undefined) {
    throw new ApiError(
      'transaction_broadcast_failure',
      `the same transaction was already sent as \`${sentId}\`; a chain accepts it only once`,
    );
  }
  const mustWait = before === undefined ? built.afterTransactionId !== undefined : !before.isBroadcastHere;
  const isBroadcastHere = !isOptimistic && !mustWait;
  const row = await recordTransaction(context, wallet.id, {
    ...identity,
    method,
    signedBytes: signed.bytes,
    nonce: built.nonce,
    afterTransactionId: before?.row.id ?? built.afterTransactionId,
    authorizations: built.authorizations,
    referenceId,
    transactionRequest: built.request,
    isOperation,
    isSponsored: built.sponsorship !== undefined,
    plainTransfer: plainTransferOf(built.action.units),
    isBroadcastHere,
  });
  return { signed, row, isBroadcastHere };
}

/**
 * Translates a refusal of the signer, which has fee ceilings of its own that may be stricter than those of this server.
 */
function asRefusal(error: unknown): unknown {
  if (error instanceof FeeAboveCeilingError)
    return new ApiError('transaction_broadcast_failure', error.message);
  return error instanceof NotComparableError ? new ApiError('not_supported', error.message) : error;
}
