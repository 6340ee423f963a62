import { ApiError, notFound } from '../../../errors.ts';
import type {
  CreateExternalFiatAccountRequest,
  ExternalFiatAccount,
  OrganizationExternalFiatAccount,
} from '../../../generated/schemas.ts';
import type { FiatEnvironment, RegisteredBankAccount } from '../../../ports/fiat.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { lockForUpdate, lockName } from '../../../storage/locks.ts';
import { findFingerprint, fingerprint } from '../../base/fingerprints/fingerprint.ts';
import {
  askProvider,
  environmentOf,
  type FiatEntity,
  findFiatEntity,
  findProvider,
  lockFiatEntity,
  type NamedProvider,
  requireCustomer,
} from '../fiat-customers/find-customer.ts';
import { checkAccount, fiatRefusal, identityOf, lastFourOf, providerKey } from './check-account.ts';
import { ExternalFiatAccountEntity, type StoredFiatAccount } from './external-fiat-account.entity.ts';

/** Converts a user's bank account to wire form. */
export function userFiatAccountView(account: StoredFiatAccount): ExternalFiatAccount {
  return { ...viewOf(account), user_id: account.entityId };
}

/** Converts an organization's bank account to wire form. */
export function organizationFiatAccountView(account: StoredFiatAccount): OrganizationExternalFiatAccount {
  return { ...viewOf(account), organization_id: account.entityId };
}

function viewOf(account: StoredFiatAccount) {
  const { bankName, lastFour } = account;
  return {
    id: account.id,
    provider: account.provider as ExternalFiatAccount['provider'],
    environment: account.environment as ExternalFiatAccount['environment'],
    account_owner_name: account.accountOwnerName,
    account_type: account.accountType,
    ...(bankName === null ? {} : { bank_name: bankName }),
    currency: account.currency,
    ...(lastFour === null ? {} : { last_4: lastFour }),
    created_at: new Date(account.createdAtMs).toISOString(),
  };
}

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * Lists the bank accounts of a user or an organization in one environment of a provider, newest first. Removed accounts
 * are omitted.
 *
 * @throws ApiError not_found
 */
export async function listFiatAccounts(
  context: FindContext,
  entity: FiatEntity,
  named: NamedProvider,
): Promise<StoredFiatAccount[]> {
  const { id: entityId } = await findFiatEntity(context, entity);
  const own = { appId: context.app.id, entityId, deletedAtMs: null };
  return context.em.find(
    ExternalFiatAccountEntity,
    { ...own, provider: named.provider, environment: environmentOf(named) },
    { orderBy: { createdAtMs: 'desc', id: 'desc' } },
  );
}

/**
 * Finds a bank account of a user or an organization.
 *
 * @throws ApiError not_found
 */
export async function findFiatAccount(
  context: FindContext,
  entity: FiatEntity,
  accountId: string,
): Promise<StoredFiatAccount> {
  const { id: entityId } = await findFiatEntity(context, entity);
  const account = await getFiatAccount(context, entityId, accountId);
  if (account === undefined) throw notFound('External fiat account');
  return account;
}

/**
 * Returns a bank account of a user or an organization, or undefined.
 *
 * @param entityId the full id of the user or organization.
 */
export async function getFiatAccount(
  context: FindContext,
  entityId: string,
  accountId: string,
): Promise<StoredFiatAccount | undefined> {
  const where = ownAccount(context, entityId, accountId);
  return (await context.em.findOne(ExternalFiatAccountEntity, where)) ?? undefined;
}

/**
 * Returns a bank account of a user or an organization and locks it until the transaction ends. Returns undefined if
 * there is none.
 *
 * @param entityId the full id of the user or organization.
 */
export async function getFiatAccountForUpdate(
  context: FindContext,
  entityId: string,
  accountId: string,
): Promise<StoredFiatAccount | undefined> {
  const where = ownAccount(context, entityId, accountId);
  return (await context.em.findOne(ExternalFiatAccountEntity, where, lockForUpdate)) ?? undefined;
}

function ownAccount({ app }: FindContext, entityId: string, id: string) {
  return { id, appId: app.id, entityId, deletedAtMs: null };
}

/**
 * Removes a bank account. Payouts in progress continue. A payout that is being created either waits for the removal
 * or no longer finds the account.
 *
 * @throws ApiError not_found
 */
export async function deleteFiatAccount(
  context: OperationContext,
  entity: FiatEntity,
  accountId: string,
): Promise<void> {
  const { id: entityId } = await findFiatEntity(context, entity);
  const account = await getFiatAccountForUpdate(context, entityId, accountId);
  if (account === undefined) throw notFound('External fiat account');
  account.deletedAtMs = context.nowMs;
  await context.em.flush();
  const { customerId, providerAccountId, provider, environment } = account;
  const { fiatProviders, log } = context;
  context.afterCommit(async () => {
    try {
      const found = fiatProviders.find(provider, environment as FiatEnvironment);
      await found?.removeBankAccount(customerId, providerAccountId);
    } catch (err) {
      // The account stays registered there, which is harmless: only our payouts use it, and they no longer find it
      // here.
      log.warn(
        { err, account: accountId },
        'failed to remove a bank account at the provider, where it stays registered',
      );
    }
  });
}

/** CHOICE: the maximum number of bank accounts of a user or an organization in one environment of a provider. */
const MAX_ACCOUNTS = 100;

interface AccountInput {
  readonly entity: FiatEntity;
  readonly body: CreateExternalFiatAccountRequest;
}

/** The account as the provider registered it; undefined if it was already registered. */
type PlannedAccount = RegisteredBankAccount | undefined;

/**
 * Checks a bank account and registers it with the provider. Safe to repeat: until the account is removed, the
 * provider registers it once.
 *
 * @throws ApiError not_found; invalid_data, also when the provider declines the account; not_supported for a provider
 * that is not configured; invalid_state for a user or organization that is not verified; invalid_request for too many
 * accounts; unavailable when the provider cannot be reached.
 */
export async function planAccount(context: PlanContext, input: AccountInput): Promise<PlannedAccount> {
  const { body } = input;
  const owner = await findOwner(context, input);
  checkAccount(body);
  const provider = findProvider(context, owner);
  const { customerId } = await requireCustomer(context, customerOf(owner));
  const identity = identityOf(body);
  const { isRegistered, removals } = await findSame(context, owner, identity);
  if (isRegistered) return undefined;
  await requireRoom(context, owner);
  const answer = await askProvider(owner.provider, () =>
    provider.registerBankAccount({
      // The count of removals is part of the key, so that the provider registers the account again after a removal.
      key: providerKey('bank account', owner, identity, removals),
      customerId,
      ownerKind: input.entity.type === 'user' ? 'person' : 'business',
      ownerName: body.account_owner_name,
      bankName: body.bank_name,
      currency: body.currency,
      account: body.account,
      address: body.address,
    }),
  );
  if ('fault' in answer) throw fiatRefusal(answer, { data: '', pair: '/currency' });
  return answer;
}

/**
 * Stores a bank account that the provider has registered. If the same account is already stored, returns the existing
 * row.
 *
 * @throws ApiError with the codes that `planAccount` lists, because it repeats those checks.
 */
export async function registerAccount(
  context: OperationContext,
  input: AccountInput & { readonly planned: Planned<PlannedAccount> },
): Promise<StoredFiatAccount> {
  const { body } = input;
  const registered = unwrapPlan(input.planned);
  const owner = await findOwner(context, input);
  await lockFiatEntity(context, input.entity);
  // Serialize registrations for one user or organization, because they are counted and compared.
  await lockName(context.em, 'fiat accounts', `fiat accounts of ${owner.entityId}`);
  const identity = await fingerprint(context, identityOf(body));
  const known = await context.em.findOne(ExternalFiatAccountEntity, {
    ...owner,
    fingerprint: identity,
    deletedAtMs: null,
  });
  if (known !== null) return known;
  if (registered === undefined) {
    throw new ApiError('unavailable', 'the account was removed in the meantime; send the request again');
  }
  const { customerId } = await requireCustomer(context, customerOf(owner));
  await requireRoom(context, owner);
  const { account } = body;
  const bankName = registered.bankName ?? body.bank_name;
  const stored = context.em.create(ExternalFiatAccountEntity, {
    ...owner,
    id: context.ids.cuid(),
    providerAccountId: registered.id,
    customerId,
    accountType: account.type,
    currency: body.currency,
    accountOwnerName: body.account_owner_name,
    bankName: bankName ?? null,
    lastFour: registered.last4 ?? lastFourOf(account) ?? null,
    fingerprint: identity,
    createdAtMs: context.nowMs,
    deletedAtMs: null,
  });
  await context.em.flush();
  return stored;
}

/** The columns that identify the owner of an account and its provider. */
interface Owner {
  readonly appId: string;
  readonly entityType: FiatEntity['type'];
  readonly entityId: string;
  readonly provider: string;
  readonly environment: FiatEnvironment;
}

const customerOf = (owner: Owner) => ({
  entity: { type: owner.entityType, id: owner.entityId },
  named: owner,
  capability: 'payout_fiat' as const,
});

async function findOwner(context: PlanContext, { entity, body }: AccountInput): Promise<Owner> {
  const { type, id } = await findFiatEntity(context, entity);
  const { provider } = body;
  return {
    appId: context.app.id,
    entityType: type,
    entityId: id,
    provider,
    environment: environmentOf(body),
  };
}

/** Returns whether the account is registered, and how many times it was removed before. */
async function findSame(context: PlanContext, owner: Owner, identity: object) {
  const known = await findFingerprint(context, identity);
  if (known === undefined) return { isRegistered: false, removals: 0 };
  const same = { ...owner, fingerprint: known };
  const live = await context.em.count(ExternalFiatAccountEntity, { ...same, deletedAtMs: null });
  const removals = await context.em.count(ExternalFiatAccountEntity, { ...same, deletedAtMs: { $ne: null } });
  return { isRegistered: live > 0, removals };
}

async function requireRoom({ em }: Pick<PlanContext, 'em'>, owner: Owner): Promise<void> {
  const count = await em.count(ExternalFiatAccountEntity, { ...owner, deletedAtMs: null });
  if (count < MAX_ACCOUNTS) return;
  throw new ApiError('invalid_request', `expected at most ${MAX_ACCOUNTS} bank accounts; remove one first`);
}
