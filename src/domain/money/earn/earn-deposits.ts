import { earnAction } from '../../../engine/actions/earn-terms.ts';
import { tokenVault } from '../../../engine/signing/ethereum/contract-calls.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { EarnRequest, WalletActionType } from '../../../generated/schemas.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import type { Authorization } from '../../access/owners/require-authorization.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { BuildTransaction } from '../sending/broadcast.ts';
import { callChain, insufficientFunds } from '../sending/call-chain.ts';
import { approvalsFor, type PlannedCalls, planCalls } from '../sending/plan-calls.ts';
import { paysForAutomations } from '../sending/plan-user-operation.ts';
import type { EarnOutcomeTerms } from '../wallet-actions/action-types.ts';
import type { WalletActionRow } from '../wallet-actions/wallet-action.entity.ts';
import { beginWalletAction, requireFreshNonce, sendSteps } from '../wallet-actions/wallet-action.ts';
import { askVault, type EarnTerms, readEarnBody, requireVaultChain, vaultFields } from './earn-vault.ts';

/** The optional fields that the requests of all earn actions have. */
interface ActionBody {
  readonly nonce?: string | undefined;
  readonly reference_id?: string | undefined;
}

interface EarnAction {
  readonly type: WalletActionType;
  readonly body: ActionBody;
  readonly builds: readonly BuildTransaction[];
  readonly details: object;
  readonly terms: object;
  readonly authorization: Authorization;
}

/** Signs the transactions of an authorized action, and stores the action with them as steps. */
export async function startEarnAction(
  context: OperationContext,
  wallet: WalletRow,
  { type, body, builds, details, terms, authorization }: EarnAction,
): Promise<WalletActionRow> {
  const referenceId = body.reference_id;
  const steps = await sendSteps(context, wallet, {
    ...{ type, referenceId, builds, authorization },
    readsEffects: true,
  });
  const action = { type, nonce: body.nonce, referenceId, details, terms, steps };
  return beginWalletAction(context, wallet.id, action);
}

/** The transactions of a deposit. */
export interface DepositPlan {
  readonly builds: readonly BuildTransaction[];
  /** Whether the approval is a separate transaction before the deposit. */
  readonly isApproved: boolean;
  readonly deposited: { readonly caip2: string; readonly token: string; readonly rawAmount: bigint };
  /** The maximum cost of the gas in base units of the native asset, even if the gas is sponsored. */
  readonly cost: bigint;
}

/**
 * Plans the transactions of a deposit from the state of the chain.
 *
 * @throws ApiError not_found; invalid_data; not_supported; insufficient_funds; transaction_execution_failure;
 * transaction_broadcast_failure when the chain cannot be reached.
 */
export async function planDepositRequest(
  context: PlanContext,
  walletId: string,
  body: EarnRequest,
): Promise<DepositPlan> {
  const wallet = await findWallet(context, walletId);
  return planDeposit(context, wallet, await readEarnBody(context, wallet, body));
}

/**
 * Starts a deposit into a vault: signs an approval of exactly the amount if one is needed, and the deposit.
 *
 * @throws ApiError not_found; invalid_data; not_supported; insufficient_funds; policy_violation; what
 * `requireAuthorization` throws; resource_conflict for a nonce that was used; transaction_execution_failure;
 * transaction_broadcast_failure.
 */
export async function depositIntoVault(
  context: OperationContext,
  { walletId, body, planned }: { walletId: string; body: EarnRequest; planned: Planned<DepositPlan> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'depositEthereumEarn',
    request: body,
    async prepare() {
      const terms = await readEarnBody(context, wallet, body);
      const decimals = terms.vault.assetDecimals;
      return { action: earnAction('earn_deposit', body, { ...terms, decimals }), terms };
    },
    allowsSigners: true,
  });
  const { vault, rawAmount } = use.prepared.terms;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const { builds, isApproved } = unwrapPlan(planned);
  const terms: EarnOutcomeTerms = {
    wallet_address: wallet.address,
    ...(isApproved ? { allowance: String(rawAmount) } : {}),
  };
  const details = vaultFields(vault, rawAmount);
  const action = { type: 'earn_deposit', body, builds, details, terms } as const;
  return startEarnAction(context, wallet, { ...action, authorization: use.authorization });
}

async function planDeposit(
  context: PlanContext,
  wallet: WalletRow,
  { vault, rawAmount, pointer }: EarnTerms,
): Promise<DepositPlan> {
  const chain = requireVaultChain(context, vault);
  const [[balance = 0n], most, shares] = await callChain(
    Promise.all([
      chain.balances(wallet.address, [vault.assetAddress]),
      askVault(chain, vault, 'maxDeposit', wallet.address),
      askVault(chain, vault, 'previewDeposit', rawAmount),
    ]),
  );
  if (most === undefined) throw noVault(vault.address);
  if (balance < rawAmount) {
    const payer = { caip2: vault.caip2, address: wallet.address, tokenAddress: vault.assetAddress };
    throw insufficientFunds({ ...payer, needed: rawAmount, balance });
  }
  if (rawAmount > most) {
    throw invalidField(pointer, `the vault takes at most ${most} base units now, got ${rawAmount}`);
  }
  // An attacker may have inflated the price of a share, so that small deposits get no shares.
  if (shares === 0n) throw invalidField(pointer, 'expected an amount that is worth a share of the vault');
  const spending = {
    chain,
    token: vault.assetAddress,
    owner: wallet.address,
    spender: vault.address,
    rawAmount,
  };
  const approvals = await approvalsFor(context, spending);
  const data = tokenVault.encodeCall('deposit', rawAmount, wallet.address);
  const { builds, cost } = await planCalls(context, {
    ...{ caip2: vault.caip2, address: wallet.address, method: 'earn_deposit' },
    calls: [...approvals, { to: vault.address.toLowerCase(), value: 0n, data }],
    isSponsored: paysForAutomations(context, chain),
  });
  // In a single transaction, a failed deposit reverts the approval as well, so no allowance remains.
  const deposited = { caip2: vault.caip2, token: vault.assetAddress, rawAmount };
  return { builds, isApproved: approvals.length > 0 && builds.length > 1, deposited, cost };
}

function noVault(address: string): ApiError {
  return new ApiError('not_supported', `/vault_id: no vault that can be read is at \`${address}\``);
}

/**
 * Plans the transactions of a withdrawal from the state of the chain.
 *
 * @throws ApiError not_found; invalid_data; not_supported; insufficient_funds; transaction_execution_failure;
 * transaction_broadcast_failure when the chain cannot be reached.
 */
export async function planWithdrawalRequest(
  context: PlanContext,
  walletId: string,
  body: EarnRequest,
): Promise<PlannedCalls> {
  const wallet = await findWallet(context, walletId);
  return planWithdrawal(context, wallet, await readEarnBody(context, wallet, body));
}

/**
 * Withdraws from a vault to the wallet. A withdrawal of the whole position redeems all shares, so that none remain.
 *
 * @throws ApiError what `depositIntoVault` throws.
 */
export async function withdrawFromVault(
  context: OperationContext,
  { walletId, body, planned }: { walletId: string; body: EarnRequest; planned: Planned<PlannedCalls> },
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId);
  const use = await authorizeUse(context, wallet, {
    operation: 'withdrawEthereumEarn',
    request: body,
    async prepare() {
      const terms = await readEarnBody(context, wallet, body);
      const decimals = terms.vault.assetDecimals;
      return { action: earnAction('earn_withdraw', body, { ...terms, decimals }), terms };
    },
    allowsSigners: true,
  });
  const { vault, rawAmount } = use.prepared.terms;
  await requireFreshNonce(context, wallet.id, body.nonce);
  await use.recordOrDeny();
  const { builds } = unwrapPlan(planned);
  const terms: EarnOutcomeTerms = { wallet_address: wallet.address };
  const details = vaultFields(vault, rawAmount);
  const action = { type: 'earn_withdraw', body, builds, details, terms } as const;
  return startEarnAction(context, wallet, { ...action, authorization: use.authorization });
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
  // Vaults may round `maxWithdraw` down, so the shares decide whether it is the whole position.
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
