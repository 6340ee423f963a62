import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { useWalletKey } from '../../wallets/wallet-uses/use-wallet-key.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { plainTransferOf } from '../transactions/plain-transfer.ts';
import { findSent, recordTransaction } from '../transactions/record-transaction.ts';
import { broadcastTransaction } from './broadcast.ts';
import type { BuiltTransaction, SignedBytes } from './built-transaction.ts';

export interface SendOptions {
  /** The rpc method or wallet action that sends it. */
  readonly method: string;
  readonly referenceId?: string | undefined;
  /** Answer without waiting for the chain: the job broadcasts. */
  readonly isOptimistic?: boolean | undefined;
}

export interface SentTransaction extends SignedBytes {
  readonly transactionId: string;
  /** Unix ms. */
  readonly sentAtMs: number;
}

/**
 * Signs a built transaction, keeps its bytes, and leaves the broadcast for after the commit. The caller has asked
 * whether the wallet may be used so.
 *
 * @throws ApiError transaction_broadcast_failure when the very same transaction was sent already; after the commit what
 * `broadcastTransaction` throws.
 */
export async function sendBuilt(
  context: OperationContext,
  wallet: WalletRow,
  built: BuiltTransaction,
  { method, referenceId, isOptimistic = false }: SendOptions,
): Promise<SentTransaction> {
  const { chain } = built;
  const signed = await useWalletKey(context, wallet, ({ privateKey }) => built.sign(privateKey));
  const identity = { caip2: chain.caip2, sender: wallet.address, hash: signed.hash };
  // No two user operations are the same: each draws a nonce of its own.
  const isOperation = built.sponsorship === 'operation';
  const sentId = isOperation ? undefined : await findSent(context, identity);
  if (sentId !== undefined) {
    throw new ApiError(
      'transaction_broadcast_failure',
      `The same transaction was sent already, as \`${sentId}\`; a chain takes it only once.`,
    );
  }
  const row = await recordTransaction(context, wallet.id, {
    ...identity,
    method,
    signedBytes: signed.bytes,
    nonce: built.nonce,
    referenceId,
    transactionRequest: built.request,
    isOperation,
    isSponsored: built.sponsorship !== undefined,
    plainTransfer: plainTransferOf(built.action.units),
    isBroadcastHere: !isOptimistic,
  });
  if (!isOptimistic) context.afterCommit(() => broadcastTransaction(context, chain, row));
  return { ...signed, transactionId: row.id, sentAtMs: context.nowMs };
}
