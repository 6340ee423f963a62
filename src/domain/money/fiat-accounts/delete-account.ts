import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { FiatEnvironment } from '../../../ports/fiat-providers.ts';
import { type FiatEntity, findFiatEntity } from '../fiat-customers/fiat-entity.ts';
import { getFiatAccountForUpdate } from './find-account.ts';

/**
 * Removes a bank account. Payouts in progress continue; a payout that is being created waits for this one or sees it.
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
      // Only our payouts use it there, and they no longer find it here.
      log.warn({ err, account: accountId }, 'a removed bank account stays registered with the provider');
    }
  });
}
