import { earnAction } from '../../../actions/earn-terms.ts';
import { ApiError } from '../../../errors.ts';
import type { EarnRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { tokenVault } from '../../../signing/ethereum/contracts/vault-calls.ts';
import { authorizeUse } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { callChain } from '../sending/call-chain.ts';
import { type PlannedCalls, planCalls } from '../sending/plan-calls.ts';
import { requireFreshNonce } from '../wallet-actions/begin-wallet-action.ts';
import type { EarnOutcomeTerms } from '../wallet-actions/earn-types.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action-row.ts';
import { noVault } from './deposit-into-vault.ts';
import { type EarnTerms, readEarnBody, vaultFields } from './earn-terms.ts';
import { askVault, requireVaultChain } from './read-vault.ts';
import { startEarnAction } from './start-earn-action.ts';

/**
 * Queries the chain for what a withdrawal needs.
 *
 * @throws the verb's errors for a withdrawal that cannot be executed.
 */
export async function prepareWithdrawal(
  context: PlanContext,
  walletId: string,
  body: EarnRequest,
): Promise<PlannedCalls> {
  const wallet = await findWallet(context, walletId);
  return planWithdrawal(context, wallet, await readEarnBody(context, wallet, body));
}

/**
 * Withdraws from a vault to the wallet. A withdrawal of the whole position redeems all shares, so that none are left.
 *
 * @throws ApiError as `depositIntoVault`.
 */
export async function withdrawFromVault(
  context: OperationContext,
  { walletId, body, planned }: { walletId: string; body: EarnRequest; planned: Planned<PlannedCalls> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'withdrawEthereumEarn',
    request: body,
    async decode() {
      const terms = await readEarnBody(context, wallet, body);
      const decimals = terms.vault.assetDecimals;
      return { action: earnAction('earn_withdraw', body, { ...terms, decimals }), terms };
    },
    mayBeSigner: true,
  });
  const { vault, rawAmount } = use.decoded.terms;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.record();
  const { builds } = unwrapPlan(planned);
  const terms: EarnOutcomeTerms = { wallet_address: wallet.address };
  const details = vaultFields(vault, rawAmount);
  return startEarnAction(context, wallet, { type: 'earn_withdraw', body, builds, details, terms });
}

async function planWithdrawal(
  context: PlanContext,
  wallet: WalletRow,
  { vault, rawAmount }: EarnTerms,
): Promise<PlannedCalls> {
  const chain = requireVaultChain(context, vault);
  const [shares = 0n] = await callChain(chain.balances(wallet.address, [vault.address]));
  const [position, most, redeemable = 0n] = await callChain(
    Promise.all([
      askVault(chain, vault, 'convertToAssets', shares),
      askVault(chain, vault, 'maxWithdraw', wallet.address),
      askVault(chain, vault, 'maxRedeem', wallet.address),
    ]),
  );
  if (position === undefined || most === undefined) throw noVault(vault.address);
  if (rawAmount > position) {
    throw new ApiError('insufficient_funds', `the position holds ${position} base units, got ${rawAmount}`);
  }
  // Vaults may round `maxWithdraw` down, so the whole position is judged by its shares.
  const isAll = rawAmount === position && redeemable === shares;
  if (!isAll && rawAmount > most) {
    throw new ApiError(
      'insufficient_funds',
      `the vault can pay out ${most} base units now, got ${rawAmount}`,
    );
  }
  const data = isAll
    ? tokenVault.encodeCall('redeem', shares, wallet.address, wallet.address)
    : tokenVault.encodeCall('withdraw', rawAmount, wallet.address, wallet.address);
  return planCalls(context, {
    ...{ caip2: vault.caip2, address: wallet.address, method: 'earn_withdraw' },
    calls: [{ to: vault.address.toLowerCase(), value: 0n, data }],
  });
}
