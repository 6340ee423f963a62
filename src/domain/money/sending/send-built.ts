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
  /** Respond without waiting for the chain; the job broadcasts. */
  readonly isOptimistic?: boolean | undefined;
}

export interface SentTransaction extends SignedBytes {
  readonly transactionId: string;
  /** Unix ms. */
  readonly sentAtMs: number;
}

/**
 * Signs a built transaction, stores its bytes, and schedules the broadcast for after the commit. The caller has
 * already authorized this use of the wallet.
 *
 * @throws ApiError transaction_broadcast_failure when the identical transaction was sent before; after the commit,
 * whatever `broadcastTransaction` throws.
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
  // User operations are never identical: each has a random nonce.
  const isOperation = built.sponsorship === 'operation';
  const sentId = isOperation ? undefined : await findSent(context, identity);
  if (sentId !== undefined) {
    throw new ApiError(
      'transaction_broadcast_failure',
      `the same transaction was already sent as \`${sentId}\`; a chain accepts it only once`,
    );
  }
  const row = await recordTransaction(context, wallet.id, {
    ...identity,
    method,
    signedBytes: signed.bytes,
    nonce: built.nonce,
    authorizations: built.authorizations,
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
