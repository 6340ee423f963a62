import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import type { OperationContext, Services } from '../../../operation-context.ts';
import type { FiatEnvironment, FiatPlace, VirtualAccount } from '../../../ports/fiat-providers.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { FiatDepositAccountEntity, type StoredDepositAccount } from './fiat-deposit-account.entity.ts';
import { sealInstructions } from './instructions.ts';

// HOT: jobs of several processes claim these rows. No bench case covers it.

/** CHOICE: how often a provider is asked for instructions that it prepares, and to close an account. */
const AGAIN_MS = 2000;

interface Wanted {
  readonly nowMs: number;
  readonly limit: number;
}

const dueOf = (database: Kysely<Tables>, { nowMs, limit }: Wanted) =>
  database
    .selectFrom('fiat_deposit_accounts')
    .select('id')
    .where('next_check_at_ms', '<=', nowMs)
    .orderBy('next_check_at_ms')
    .orderBy('id')
    .limit(limit)
    .forUpdate()
    .skipLocked();

const selectDue = prepareQuery<Wanted, { id: string }>(dueOf);

/**
 * Claims accounts that wait for their instructions, and deactivated ones that are still open at the provider.
 *
 * @param wanted `busy`: providers whose accounts are left out.
 */
export async function claimDueAccounts(
  em: SqlEntityManager,
  nowMs: number,
  { busy, limit }: { readonly busy: readonly FiatPlace[]; readonly limit: number },
): Promise<readonly StoredDepositAccount[]> {
  const wanted = { nowMs, limit };
  const rows =
    busy.length === 0
      ? (await selectDue(em, wanted)).rows
      : await dueOf(em.getKysely<Tables>(), wanted)
          .where(({ and, not, eb }) =>
            and(
              busy.map(({ provider, environment }) =>
                not(and([eb('provider', '=', provider), eb('environment', '=', environment)])),
              ),
            ),
          )
          .execute();
  if (rows.length === 0) return [];
  const due = await em.find(FiatDepositAccountEntity, { id: { $in: rows.map(({ id }) => id) } });
  for (const account of due) account.nextCheckAtMs = nowMs + AGAIN_MS;
  await em.flush();
  return due;
}

/** What the provider says about an account; undefined while there is nothing to store. */
export async function askAboutAccount(
  { fiatProviders }: Pick<Services, 'fiatProviders'>,
  { provider: name, environment, customerId, virtualAccountId, status }: StoredDepositAccount,
): Promise<'closed' | VirtualAccount | undefined> {
  const provider = fiatProviders.find(name, environment as FiatEnvironment);
  if (provider === undefined) return undefined;
  if (status === 'activated') return provider.virtualAccount(customerId, virtualAccountId);
  await provider.closeVirtualAccount(customerId, virtualAccountId);
  return 'closed';
}

/** Stores what the provider said about an account. */
export async function keepAccount(
  context: Pick<OperationContext, 'em' | 'vault'>,
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
