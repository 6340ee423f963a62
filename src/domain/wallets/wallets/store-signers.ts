import type { AdditionalSignerInput } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';

// HOT: part of creating a wallet (bench `sqlite`, `postgres`).

type StoreContext = Pick<OperationContext, 'em'>;

/**
 * Indexes a wallet's additional signers by key quorum and by policy.
 *
 * INVARIANT: the rows of a wallet in `wallet_signers` match its `additional_signers`.
 */
export async function storeSigners(
  { em }: StoreContext,
  walletId: string,
  signers: AdditionalSignerInput,
): Promise<void> {
  if (signers.length === 0) return;
  const rows = signers.map((signer, position) => ({
    wallet_id: walletId,
    position,
    signer_id: signer.signer_id,
    override_policy_id: signer.override_policy_ids?.[0] ?? null,
  }));
  await em.getKysely<Tables>().insertInto('wallet_signers').values(rows).execute();
}

/** Replaces the indexed signers. */
export async function replaceSigners(
  context: StoreContext,
  walletId: string,
  signers: AdditionalSignerInput,
): Promise<void> {
  await context.em
    .getKysely<Tables>()
    .deleteFrom('wallet_signers')
    .where('wallet_id', '=', walletId)
    .execute();
  await storeSigners(context, walletId, signers);
}
