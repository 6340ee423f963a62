import type { SqlEntityManager } from '@mikro-orm/sql';
import type { FiatEnvironment } from '../../../ports/fiat-providers.ts';
import { FiatDepositEntity } from './fiat-deposit.entity.ts';
import { FiatDepositAccountEntity } from './fiat-deposit-account.entity.ts';

/** A deposit as far as the server has followed it. */
export interface FoundDeposit {
  readonly accountId: string;
  readonly environment: FiatEnvironment;
  readonly state: string;
}

/** The deposit with this id at its provider, of any app; undefined for an unknown one. */
export async function getFiatDeposit(
  em: SqlEntityManager,
  providerDepositId: string,
): Promise<FoundDeposit | undefined> {
  const found = await em.findOne(FiatDepositEntity, { providerDepositId });
  if (found === null) return undefined;
  return {
    accountId: found.accountId,
    environment: found.environment as FiatEnvironment,
    state: found.state,
  };
}

/** Where the provider keeps a deposit account, of any app; undefined for an unknown one. */
export async function getVirtualAccount(
  em: SqlEntityManager,
  accountId: string,
): Promise<{ readonly virtualAccountId: string; readonly environment: FiatEnvironment } | undefined> {
  const found = await em.findOne(FiatDepositAccountEntity, { id: accountId });
  if (found === null) return undefined;
  return { virtualAccountId: found.virtualAccountId, environment: found.environment as FiatEnvironment };
}
