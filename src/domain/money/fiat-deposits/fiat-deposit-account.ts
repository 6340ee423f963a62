import type { SqlEntityManager } from '@mikro-orm/sql';
import { decimalText, readDecimal } from '../../../engine/assets/decimal.ts';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import { ApiError, notFound } from '../../../errors.ts';
import type {
  CreateFiatDepositAccountRequest,
  FiatDepositAccount,
  FiatDepositInstructions,
} from '../../../generated/schemas.ts';
import type { FiatEnvironment, FiatPlace, VirtualAccount } from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  type Services,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { lockForUpdate, lockUnlocked } from '../../../storage/locks.ts';
import { depositInstructionsBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { findWallet, findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { fiatRefusal, providerCurrencies, providerKey } from '../external-fiat-accounts/check-account.ts';
import {
  requireNetwork,
  requireWalletAsset,
  requireWalletEntity,
} from '../external-fiat-accounts/wallet-asset.ts';
import {
  askProvider,
  environmentOf,
  findProvider,
  type NamedProvider,
  requireCustomer,
} from '../fiat-customers/find-customer.ts';
import {
  FiatDepositAccountEntity,
  FiatDepositInstructionsEntity,
  type StoredFiatDepositAccount,
} from './fiat-deposit.entity.ts';
import { beginFiatPosition } from './record-fiat-deposits.ts';

type InstructionsContext = Pick<OperationContext, 'em' | 'keyStore'>;
type Account = Pick<StoredFiatDepositAccount, 'id' | 'appId'>;

const bindingOf = ({ id, appId }: Account) => depositInstructionsBinding({ id, app_id: appId });

/** Seals and stores the payment instructions of an account. The caller flushes. */
async function sealInstructions(
  { em, keyStore }: InstructionsContext,
  account: Account,
  instructions: FiatDepositInstructions,
): Promise<void> {
  const secret = Uint8Array.from(Buffer.from(JSON.stringify(instructions), 'utf8'));
  const sealed = await keyStore.seal(secret, bindingOf(account)).finally(() => secret.fill(0));
  em.create(FiatDepositInstructionsEntity, {
    id: account.id,
    appId: account.appId,
    sealedSecret: Buffer.from(sealed.sealedSecret),
    wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
    masterKeyId: sealed.masterKeyId,
  });
}

/** Reads the payment instructions of accounts, by id. Accounts without stored instructions are omitted. */
async function readInstructions(
  { em, keyStore }: InstructionsContext,
  accounts: readonly Account[],
): Promise<ReadonlyMap<string, FiatDepositInstructions>> {
  const ids = accounts.map(({ id }) => id);
  const stored = ids.length === 0 ? [] : await em.find(FiatDepositInstructionsEntity, { id: { $in: ids } });
  const found = new Map<string, FiatDepositInstructions>();
  for (const row of stored) {
    const text = Buffer.from(await keyStore.open(row, bindingOf(row))).toString('utf8');
    found.set(row.id, JSON.parse(text) as FiatDepositInstructions);
  }
  return found;
}

/** Converts deposit accounts to wire form, with their payment instructions. */
export async function fiatDepositAccountViews(
  context: Pick<OperationContext, 'em' | 'keyStore'>,
  accounts: readonly StoredFiatDepositAccount[],
): Promise<FiatDepositAccount[]> {
  const activated = accounts.filter(({ status }) => status === 'activated');
  const instructions = await readInstructions(context, activated);
  return accounts.map((account) => ({
    id: account.id,
    wallet_id: account.walletId,
    provider: account.provider as FiatDepositAccount['provider'],
    environment: account.environment as FiatDepositAccount['environment'],
    status: account.status as FiatDepositAccount['status'],
    source: { currency: account.currency, payment_rails: JSON.parse(account.paymentRails) as string[] },
    destination: { asset: account.asset, chain: account.chain },
    developer_fee_percent: account.developerFeePercent,
    deposit_instructions: instructions.get(account.id) ?? null,
    created_at: new Date(account.createdAtMs).toISOString(),
  }));
}

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * Lists the deposit accounts of a wallet in one environment of a provider, newest first.
 *
 * @throws ApiError not_found
 */
export async function listFiatDepositAccounts(
  context: FindContext,
  walletId: string,
  named: NamedProvider,
): Promise<StoredFiatDepositAccount[]> {
  const { id } = await findWallet(context, walletId);
  return context.em.find(
    FiatDepositAccountEntity,
    { walletId: id, provider: named.provider, environment: environmentOf(named) },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
}

/**
 * The maximum length of the list. A wallet has few activated accounts, but may have many deactivated ones. The newest
 * accounts are listed.
 */
const MAX_LISTED = 200;

/**
 * Finds a fiat deposit account of a wallet.
 *
 * @throws ApiError not_found
 */
export async function findFiatDepositAccount(
  context: FindContext,
  walletId: string,
  accountId: string,
): Promise<StoredFiatDepositAccount> {
  const wallet = await findWallet(context, walletId);
  const account = await context.em.findOne(FiatDepositAccountEntity, { id: accountId, walletId: wallet.id });
  if (account === null) throw notFound('Fiat deposit account');
  return account;
}

/** CHOICE: the maximum number of activated deposit accounts of a wallet. */
const MAX_ACCOUNTS = 50;

interface FiatDepositAccountInput {
  readonly walletId: string;
  readonly body: CreateFiatDepositAccountRequest;
}

/** The account as the provider opened it; undefined if it was already open. */
type PlannedFiatDepositAccount = VirtualAccount | undefined;

/**
 * Opens a bank account at the provider whose deposits go to a wallet. Safe to repeat: while the account is activated,
 * the provider opens it once.
 *
 * @throws ApiError not_found; not_supported for a provider, currency, chain or asset that is not supported;
 * invalid_data when the provider declines the data; invalid_state for a wallet without a user or organization, and for
 * a user or organization that is not verified; invalid_request for too many accounts; unavailable when the provider
 * cannot be reached.
 */
export async function planFiatDepositAccount(
  context: PlanContext,
  { walletId, body }: FiatDepositAccountInput,
): Promise<PlannedFiatDepositAccount> {
  const wallet = await findWallet(context, walletId);
  const asset = readAsset(wallet, body);
  const place = placeOf(body);
  const provider = findProvider(context, place);
  requireNetwork(provider, asset.chain, '/environment');
  if (context.chains.find(asset.chain.caip2) === undefined) {
    // A deposit is complete when its transaction is in a block, which only a configured chain can show.
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
      // INVARIANT: an account that was opened with one fee is never stored with another fee.
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
 * Stores a fiat deposit account that the provider has opened. If the same account is already activated, returns the
 * existing row.
 *
 * @throws ApiError what `planFiatDepositAccount` throws; resource_conflict if the account has another fee.
 */
export async function createFiatDepositAccount(
  context: OperationContext,
  {
    walletId,
    body,
    planned,
  }: FiatDepositAccountInput & { readonly planned: Planned<PlannedFiatDepositAccount> },
): Promise<StoredFiatDepositAccount> {
  const opened = unwrapPlan(planned);
  // Lock the wallet, so that its accounts are opened one after the other, and not while it is archived.
  const wallet = await findWalletForUpdate(context, walletId);
  const same = sameAccount(wallet, body, readAsset(wallet, body));
  const known = await context.em.findOne(FiatDepositAccountEntity, { ...same, status: 'activated' });
  if (known !== null) return requireSameFee(known, body);
  if (opened === undefined) {
    throw new ApiError('unavailable', 'the account was deactivated in the meantime; send the request again');
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

function readAsset(wallet: WalletRow, { source, destination }: CreateFiatDepositAccountRequest): KnownAsset {
  if (!providerCurrencies.includes(source.currency)) {
    const what = `the currency \`${source.currency}\` cannot be deposited`;
    throw new ApiError('not_supported', `/source/currency: ${what}`);
  }
  return requireWalletAsset(wallet, destination, '/destination');
}

/**
 * Returns the values that identify an account.
 *
 * CHOICE: two requests with the same values are about the same account.
 */
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
 * Refuses a request with a fee other than the account's.
 *
 * CHOICE: a second request for an account never changes the account's fee. A request with a different fee, or without a
 * fee, is refused as a conflict. To use a different fee, a client opens an account for another wallet.
 *
 * @throws ApiError resource_conflict
 */
function requireSameFee(
  account: StoredFiatDepositAccount,
  body: CreateFiatDepositAccountRequest,
): StoredFiatDepositAccount {
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

/** Normalizes a fee: `01.50` becomes `1.5`. */
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

/**
 * CHOICE: the interval at which a provider is polled for instructions that it is preparing, and at which a request to
 * close an account is repeated.
 */
const RETRY_PAUSE_MS = 2000;

/**
 * Claims accounts that wait for their instructions, and deactivated accounts that are still open at the provider.
 *
 * @param busy the busy providers, whose accounts are not claimed.
 */
export async function claimDueAccounts(
  em: SqlEntityManager,
  nowMs: number,
  { busy, limit }: { readonly busy: readonly FiatPlace[]; readonly limit: number },
): Promise<readonly StoredFiatDepositAccount[]> {
  const due = await em.find(
    FiatDepositAccountEntity,
    {
      nextCheckAtMs: { $lte: nowMs },
      // The elements of `busy` may have members that are not columns.
      $and: busy.map(({ provider, environment }) => ({ $not: { provider, environment } })),
    },
    { orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit, ...lockUnlocked },
  );
  for (const account of due) account.nextCheckAtMs = nowMs + RETRY_PAUSE_MS;
  await em.flush();
  return due;
}

/** Polls the provider about an account; undefined while there is nothing to store. */
export async function pollFiatDepositAccount(
  { fiatProviders }: Pick<Services, 'fiatProviders'>,
  { provider: name, environment, customerId, virtualAccountId, status }: StoredFiatDepositAccount,
): Promise<'closed' | VirtualAccount | undefined> {
  const provider = fiatProviders.find(name, environment as FiatEnvironment);
  if (provider === undefined) return undefined;
  if (status === 'activated') return provider.virtualAccount(customerId, virtualAccountId);
  await provider.closeVirtualAccount(customerId, virtualAccountId);
  return 'closed';
}

/** Stores the provider's response about an account. */
export async function keepAccount(
  context: Pick<OperationContext, 'em' | 'keyStore'>,
  id: string,
  said: 'closed' | VirtualAccount,
): Promise<void> {
  const account = await context.em.findOne(FiatDepositAccountEntity, { id }, lockForUpdate);
  if (account === null || account.nextCheckAtMs === null) return;
  if (said === 'closed') {
    account.nextCheckAtMs = null;
  } else if (account.status === 'activated' && said.instructions !== null) {
    await sealInstructions(context, account, said.instructions);
    account.paymentRails = JSON.stringify(said.paymentRails);
    account.nextCheckAtMs = null;
  }
  await context.em.flush();
}
