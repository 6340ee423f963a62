import { FeeAboveCeilingError } from '../../../actions/filled-fees.ts';
import { NotComparableError } from '../../../authorization/requested/building-settings.ts';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { signWithWalletKey } from '../../wallets/wallet-uses/use-wallet-key.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { plainTransferOf } from '../transactions/plain-transfer.ts';
import { findSent, recordTransaction } from '../transactions/record-transaction.ts';
import type { TransactionRow } from '../transactions/transaction-row.ts';
import { broadcastInOrder, broadcastTransaction } from './broadcast.ts';
import type { BuiltTransaction, SignedBytes } from './built-transaction.ts';
import { requireKnownAccount } from './require-known-account.ts';

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
 * CHOICE: while a transaction with a lower nonce has not reached the chain and may never do so, the response comes
 * before the broadcast: the job broadcasts this one after that one, and ends it as `failed`, unsent, if that one ends
 * without effect. Sent at once, it would wait for that nonce, perhaps for ever.
 *
 * @throws ApiError transaction_broadcast_failure when the identical transaction was sent before; after the commit,
 * whatever `broadcastTransaction` throws.
 */
export async function sendBuilt(
  context: OperationContext,
  wallet: WalletRow,
  built: BuiltTransaction,
  options: SendOptions,
): Promise<SentTransaction> {
  const { signed, row, isBroadcastHere } = await signBuilt(context, wallet, { built, options });
  if (isBroadcastHere) {
    context.afterCommit(async () => void (await broadcastTransaction(context, built.chain, row)));
  }
  return { ...signed, transactionId: row.id, sentAtMs: context.nowMs };
}

/** Builds the bytes of a transaction, inside the database transaction that signs them. */
export type BuildTransaction = (context: OperationContext) => Promise<BuiltTransaction>;

/**
 * Signs transactions that build on each other, one after the other so that their nonces are consecutive, and stores
 * them. After the commit they are broadcast in this order; one that the chain refuses ends those after it too.
 *
 * Result: what was signed, in order.
 */
export async function sendInOrder(
  context: OperationContext,
  wallet: WalletRow,
  builds: readonly BuildTransaction[],
  options: Omit<SendOptions, 'isOptimistic'>,
): Promise<readonly { readonly built: BuiltTransaction; readonly transactionId: string }[]> {
  const sent: (Signed & { readonly built: BuiltTransaction })[] = [];
  for (const build of builds) {
    // The nonce is the next one after those of the stored transactions.
    const built = await build(context);
    sent.push({ built, ...(await signBuilt(context, wallet, { built, options, before: sent.at(-1) })) });
  }
  const rows = sent.map(({ built, row }) => ({ chain: built.chain, row }));
  if (sent.every(({ isBroadcastHere }) => isBroadcastHere))
    context.afterCommit(() => broadcastInOrder(context, rows));
  return sent.map(({ built, row }) => ({ built, transactionId: row.id }));
}

/** A stored transaction. */
interface Signed {
  readonly signed: SignedBytes;
  readonly row: TransactionRow;
  /** Whether the request broadcasts it. */
  readonly isBroadcastHere: boolean;
}

/** @param before the transaction of the same action that it builds on. */
async function signBuilt(
  context: OperationContext,
  wallet: WalletRow,
  { built, options, before }: { built: BuiltTransaction; options: SendOptions; before?: Signed | undefined },
): Promise<Signed> {
  const { chain } = built;
  const { method, referenceId, isOptimistic = false } = options;
  await requireKnownAccount(context, wallet, built);
  const signed = await built.sign({
    sign: (signingMethod, params) =>
      signWithWalletKey<typeof signingMethod>(context, wallet, { method: signingMethod, params }).catch(
        (error: unknown) => {
          throw asRefusal(error);
        },
      ),
  });
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

/** The signer has settings of its own, which may be narrower than those of this server. */
function asRefusal(error: unknown): unknown {
  if (error instanceof FeeAboveCeilingError)
    return new ApiError('transaction_broadcast_failure', error.message);
  return error instanceof NotComparableError ? new ApiError('not_supported', error.message) : error;
}
