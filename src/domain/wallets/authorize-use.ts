import { type AdditionalSigner, requireOwner } from '../../authorization/require-owner.ts';
import type { WalletAdditionalSigner } from '../../generated/schemas.ts';
import type { PolicyAction } from '../../policy/action.ts';
import type { OperationContext } from '../../services.ts';
import { openRunningTotals, type RunningTotals } from '../aggregations/running-totals.ts';
import { enforcePolicies } from '../policies/enforce-policies.ts';
import { applicablePolicyIds } from './applicable-policies.ts';
import type { WalletRow } from './wallet-row.ts';

/**
 * Asks whether this request may use a wallet's key: whose agreement it carries, then every policy that applies to
 * who agreed. `decode` reads the action from the bytes to be signed and is not called for a stranger.
 *
 * Result: the running totals that the action falls under; record them once it is signed.
 *
 * @param mayBeSigner whether an additional signer may agree in the owner's place.
 * @throws ApiError the codes of `requireOwner`; policy_violation; what `decode` throws.
 */
export async function authorizeUse(
  context: OperationContext,
  wallet: WalletRow,
  decode: () => PolicyAction | Promise<PolicyAction>,
  { mayBeSigner }: { mayBeSigner: boolean },
): Promise<RunningTotals> {
  const signers = mayBeSigner ? signersOf(wallet) : [];
  const signedBy = await requireOwner(context, { ownerId: wallet.owner_id, signers });
  const action = await decode();
  const totals = await openRunningTotals(context, wallet.id, action);
  await enforcePolicies(context, applicablePolicyIds(wallet, signedBy), action, totals);
  return totals;
}

function signersOf(wallet: WalletRow): AdditionalSigner[] {
  const signers = JSON.parse(wallet.additional_signers) as WalletAdditionalSigner;
  return signers.map(({ signer_id: signerId, override_policy_ids: overridePolicyIds }) =>
    overridePolicyIds === undefined ? { signerId } : { signerId, overridePolicyIds },
  );
}
