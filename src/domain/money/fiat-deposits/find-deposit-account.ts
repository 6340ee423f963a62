import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { environmentOf, type NamedProvider } from '../fiat-customers/find-provider.ts';
import { FiatDepositAccountEntity, type StoredDepositAccount } from './fiat-deposit-account.entity.ts';

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * The deposit accounts of a wallet in one environment of a provider, newest first.
 *
 * @throws ApiError not_found
 */
export async function listDepositAccounts(
  context: FindContext,
  walletId: string,
  named: NamedProvider,
): Promise<StoredDepositAccount[]> {
  const { id } = await findWallet(context, walletId);
  return context.em.find(
    FiatDepositAccountEntity,
    { walletId: id, provider: named.provider, environment: environmentOf(named) },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
}

/** Activated accounts are few; this bounds the deactivated ones, of which the newest are shown. */
const MAX_LISTED = 200;

/**
 * A deposit account of a wallet.
 *
 * @throws ApiError not_found
 */
export async function findDepositAccount(
  context: FindContext,
  walletId: string,
  accountId: string,
): Promise<StoredDepositAccount> {
  const wallet = await findWallet(context, walletId);
  const account = await context.em.findOne(FiatDepositAccountEntity, { id: accountId, walletId: wallet.id });
  if (account === null) throw notFound('Fiat deposit account');
  return account;
}
