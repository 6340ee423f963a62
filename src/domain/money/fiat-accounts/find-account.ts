import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { type FiatEntity, findFiatEntity } from '../fiat-customers/fiat-entity.ts';
import { environmentOf, type NamedProvider } from '../fiat-customers/find-provider.ts';
import { ExternalFiatAccountEntity, type StoredFiatAccount } from './external-fiat-account.entity.ts';

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * The bank accounts of a user or an organization in one environment of a provider, newest first.
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
 * A bank account of a user or an organization.
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
 * A bank account of a user or an organization.
 *
 * @param entityId in full.
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
 * A bank account of a user or an organization, locked until the transaction ends.
 *
 * @param entityId in full.
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
