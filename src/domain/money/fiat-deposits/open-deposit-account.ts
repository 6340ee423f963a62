import { decimalText, readDecimal } from '../../../assets/decimal.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import { ApiError } from '../../../errors.ts';
import type { CreateFiatDepositAccountRequest } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import type { FiatPlace, VirtualAccount } from '../../../ports/fiat-providers.ts';
import { findWallet, findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { providerKey } from '../fiat-accounts/account-identity.ts';
import { providerCurrencies } from '../fiat-accounts/check-account.ts';
import { fiatRefusal } from '../fiat-accounts/fiat-refusal.ts';
import { requireNetwork, requireWalletAsset } from '../fiat-accounts/wallet-asset.ts';
import { requireWalletEntity } from '../fiat-accounts/wallet-entity.ts';
import { askProvider, environmentOf, findProvider } from '../fiat-customers/find-provider.ts';
import { requireCustomer } from '../fiat-customers/require-customer.ts';
import { FiatDepositAccountEntity, type StoredDepositAccount } from './fiat-deposit-account.entity.ts';
import { sealInstructions } from './instructions.ts';
import { beginFiatPosition } from './record-fiat-deposits.ts';

/** CHOICE: how many activated deposit accounts a wallet can have. */
const MAX_ACCOUNTS = 50;

export interface DepositAccountInput {
  readonly walletId: string;
  readonly body: CreateFiatDepositAccountRequest;
}

/** An account as the provider opened it; undefined when it had been opened before. */
type PlannedDepositAccount = VirtualAccount | undefined;

/**
 * Opens a bank account at the provider whose deposits go to a wallet. Safe to repeat: while the account is activated,
 * the provider opens it once.
 *
 * @throws ApiError not_found; not_supported for a provider, currency, chain or asset that is not served here;
 * invalid_state for a wallet without an entity, and for an entity that is not verified; invalid_request for too many accounts;
 * unavailable when the provider cannot be reached.
 */
export async function prepareDepositAccount(
  context: PlanContext,
  { walletId, body }: DepositAccountInput,
): Promise<PlannedDepositAccount> {
  const wallet = await findWallet(context, walletId);
  const asset = readAsset(wallet, body);
  const place = placeOf(body);
  const provider = findProvider(context, place);
  requireNetwork(provider, asset.chain, '/environment');
  if (context.chains.find(asset.chain.caip2) === undefined) {
    // Deposits are completed when their transaction is in a block, which could never be seen.
    const what = `the chain \`${asset.chain.name}\` is not configured here`;
    throw new ApiError('not_supported', `/destination/chain: ${what}`);
  }
  const customerId = await customerOf(context, wallet, place);
  const same = sameAccount(wallet, body, asset);
  if ((await context.em.count(FiatDepositAccountEntity, { ...same, status: 'activated' })) > 0)
    return undefined;
  await requireRoom(context, wallet.id);
  const fee = plainFee(feeOf(body));
  const closed = await context.em.count(FiatDepositAccountEntity, { ...same, status: 'deactivated' });
  const answer = await askProvider(place.provider, () =>
    provider.openVirtualAccount({
      // INVARIANT: what was opened with one fee is never stored with another.
      key: providerKey('deposit account', same, closed, ...(fee === '0' ? [] : [fee])),
      customerId,
      currency: body.source.currency,
      destination: {
        caip2: asset.chain.caip2,
        chain: asset.chain.name,
        asset: asset.asset,
        tokenAddress: asset.tokenAddress,
        decimals: asset.decimals,
        address: wallet.address,
      },
      developerFeePercent: fee,
    }),
  );
  if ('fault' in answer) throw fiatRefusal(answer, { data: '', pair: '/destination' });
  return answer;
}

/**
 * Stores a deposit account that the provider has opened. The same account again is the activated row that is there.
 *
 * @throws ApiError as `prepareDepositAccount`; resource_conflict for another fee than that of the account.
 */
export async function openDepositAccount(
  context: OperationContext,
  { walletId, body, planned }: DepositAccountInput & { readonly planned: Planned<PlannedDepositAccount> },
): Promise<StoredDepositAccount> {
  const opened = unwrapPlan(planned);
  // Locked: the accounts of a wallet are opened one after the other, and not while it is archived.
  const wallet = await findWalletForUpdate(context, walletId);
  const same = sameAccount(wallet, body, readAsset(wallet, body));
  const known = await context.em.findOne(FiatDepositAccountEntity, { ...same, status: 'activated' });
  if (known !== null) return requireSameFee(known, body);
  if (opened === undefined) {
    throw new ApiError('unavailable', 'the account was deactivated meanwhile; send the request again');
  }
  const customerId = await customerOf(context, wallet, placeOf(body));
  await requireRoom(context, wallet.id);
  const account = context.em.create(FiatDepositAccountEntity, {
    ...same,
    id: context.ids.cuid(),
    appId: context.app.id,
    customerId,
    virtualAccountId: opened.id,
    status: 'activated',
    paymentRails: JSON.stringify(opened.paymentRails),
    developerFeePercent: feeOf(body),
    createdAtMs: context.nowMs,
    nextCheckAtMs: opened.instructions === null ? context.nowMs : null,
  });
  if (opened.instructions !== null) await sealInstructions(context, account, opened.instructions);
  await context.em.flush();
  await beginFiatPosition(context.em, placeOf(body));
  return account;
}

function placeOf(body: CreateFiatDepositAccountRequest): FiatPlace {
  return { provider: body.provider, environment: environmentOf(body) };
}

/** The asset that deposits are converted into. */
function readAsset(wallet: WalletRow, { source, destination }: CreateFiatDepositAccountRequest): KnownAsset {
  if (!providerCurrencies.includes(source.currency)) {
    const what = `the currency \`${source.currency}\` cannot be deposited`;
    throw new ApiError('not_supported', `/source/currency: ${what}`);
  }
  return requireWalletAsset(wallet, destination, '/destination');
}

/** CHOICE: what makes two requests one account. */
function sameAccount(wallet: WalletRow, body: CreateFiatDepositAccountRequest, { asset, chain }: KnownAsset) {
  return {
    walletId: wallet.id,
    ...placeOf(body),
    currency: body.source.currency,
    asset,
    chain: chain.name,
  };
}

/**
 * CHOICE: a second request for an account never changes its fee: with another fee, which includes none, it is a conflict.
 * To change the fee, open another account, of another wallet.
 *
 * @throws ApiError resource_conflict
 */
function requireSameFee(
  account: StoredDepositAccount,
  body: CreateFiatDepositAccountRequest,
): StoredDepositAccount {
  const { developerFeePercent: fee } = account;
  if (plainFee(fee) === plainFee(feeOf(body))) return account;
  throw new ApiError(
    'resource_conflict',
    `/developer_fee_percent: the activated account has \`${fee}\`, got \`${feeOf(body)}\``,
  );
}

function feeOf({ developer_fee_percent: fee = '0' }: CreateFiatDepositAccountRequest): string {
  return fee;
}

/** `01.50` is `1.5`. */
function plainFee(fee: string): string {
  return decimalText(readDecimal(fee)!);
}

async function customerOf(context: PlanContext, wallet: WalletRow, place: FiatPlace): Promise<string> {
  const entity = await requireWalletEntity(context, wallet);
  return (await requireCustomer(context, { entity, named: place, capability: 'payin_fiat' })).customerId;
}

async function requireRoom({ em }: Pick<PlanContext, 'em'>, walletId: string): Promise<void> {
  const count = await em.count(FiatDepositAccountEntity, { walletId, status: 'activated' });
  if (count < MAX_ACCOUNTS) return;
  throw new ApiError('invalid_request', `expected at most ${MAX_ACCOUNTS} fiat deposit accounts of a wallet`);
}
