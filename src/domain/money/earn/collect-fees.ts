import { feeCollectionAction } from '../../../actions/earn-terms.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { CollectEthereumEarnFeesRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { feeVault } from '../../../signing/ethereum/contracts/vault-calls.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { callChain } from '../sending/call-chain.ts';
import { planCalls } from '../sending/plan-calls.ts';
import type { BuildTransaction } from '../sending/send-built.ts';
import { requireFreshNonce } from '../wallet-actions/begin-wallet-action.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import { requireEarnWallet, vaultFields } from './earn-terms.ts';
import { type EarnVault, findNamedVault } from './find-vault.ts';
import { askFees, requireVaultChain } from './read-vault.ts';
import { startEarnAction } from './start-earn-action.ts';

/** The fees to collect, with the transaction. */
export interface FeePlan {
  readonly rawAmount: bigint;
  readonly builds: readonly BuildTransaction[];
}

/**
 * Queries the vault for the fees of the app.
 *
 * @throws the verb's errors for a collection that cannot be executed.
 */
export async function prepareFeeCollection(
  context: PlanContext,
  walletId: string,
  body: CollectEthereumEarnFeesRequest,
): Promise<FeePlan> {
  const wallet = await findWallet(context, walletId);
  const vault = await readFeeBody(context, wallet, body);
  const chain = requireVaultChain(context, vault);
  const rawAmount = await callChain(askFees(chain, vault));
  if (rawAmount === undefined || rawAmount === 0n) {
    throw new ApiError('invalid_request', 'the vault has no fees to collect');
  }
  const data = feeVault.encodeCall('withdrawFees', wallet.address, rawAmount);
  const { builds } = await planCalls(context, {
    ...{ caip2: vault.caip2, address: wallet.address, method: 'earn_fee_collect' },
    calls: [{ to: vault.address.toLowerCase(), value: 0n, data }],
  });
  return { rawAmount, builds };
}

/**
 * Collects all fees that a vault has kept for the app, to its admin wallet.
 *
 * @throws ApiError not_found; invalid_data; not_supported; invalid_request when there are none; the codes of
 * `requireOwner`; policy_violation; resource_conflict; insufficient_funds; transaction_execution_failure;
 * transaction_broadcast_failure.
 */
export async function collectFees(
  context: OperationContext,
  {
    walletId,
    body,
    planned,
  }: { walletId: string; body: CollectEthereumEarnFeesRequest; planned: Planned<FeePlan> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'collectEthereumEarnFees',
    request: body,
    async decode() {
      const vault = await readFeeBody(context, wallet, body);
      return { action: feeCollectionAction(body), vault };
    },
    mayBeSigner: true,
  });
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const { rawAmount, builds } = unwrapPlan(planned);
  return startEarnAction(context, wallet, {
    ...{ type: 'earn_fee_collect', body, builds },
    details: vaultFields(use.decoded.vault, rawAmount),
    terms: { wallet_address: wallet.address },
  });
}

async function readFeeBody(
  context: Pick<PlanContext, 'em' | 'app'>,
  wallet: WalletRow,
  body: CollectEthereumEarnFeesRequest,
): Promise<EarnVault> {
  requireEarnWallet(wallet);
  const vault = await findNamedVault(context, body.vault_id);
  if (vault.provider !== 'aave') {
    throw new ApiError(
      'not_supported',
      `/vault_id: vaults of \`${vault.provider}\` pay fees as shares, which the admin wallet withdraws`,
    );
  }
  if (vault.adminWalletId !== wallet.id) {
    throw invalidField('/vault_id', 'expected a vault that this wallet administers');
  }
  return vault;
}
