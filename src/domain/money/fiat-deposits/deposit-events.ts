import type { OperationContext } from '../../../operation-context.ts';
import type { FiatDepositReport } from '../../../ports/fiat-providers.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { StoredDeposit } from './fiat-deposit.entity.ts';
import type { StoredDepositAccount } from './fiat-deposit-account.entity.ts';

type EventContext = Pick<OperationContext, 'em' | 'ids' | 'nowMs'>;

/** Records that a deposit was received. */
export function recordDepositStarted(
  context: EventContext,
  account: StoredDepositAccount,
  deposit: StoredDeposit,
): Promise<string> {
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_started',
    payload: { ...headOf(account, deposit), data: dataOf(account, deposit) },
  });
}

/**
 * Records that a deposit arrived in the wallet.
 *
 * @param amount in units of the asset.
 */
export function recordDepositCompleted(
  context: EventContext,
  { account, deposit, amount }: { account: StoredDepositAccount; deposit: StoredDeposit; amount: string },
): Promise<string> {
  const data = dataOf(account, deposit);
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_completed',
    payload: {
      ...headOf(account, deposit),
      data: {
        ...data,
        destination: { ...data.destination, amount, transaction_hash: deposit.transactionHash },
      },
    },
  });
}

/** Records that a deposit was paid back. */
export function recordDepositFailed(
  context: EventContext,
  {
    account,
    deposit,
    report,
  }: { account: StoredDepositAccount; deposit: StoredDeposit; report: FiatDepositReport },
): Promise<string> {
  return recordEvent(context, {
    appId: account.appId,
    type: 'wallet.deposit_account.deposit_failed',
    payload: {
      ...headOf(account, deposit),
      data: {
        ...dataOf(account, deposit),
        reason: report.reason ?? 'The provider returned the deposit.',
        reason_code: report.reasonCode ?? 'refunded',
        refunded_at: new Date(report.atMs).toISOString(),
      },
    },
  });
}

function headOf(account: StoredDepositAccount, deposit: StoredDeposit) {
  return {
    wallet_id: account.walletId,
    deposit_account_id: account.id,
    deposit_type: 'fiat',
    provider: account.provider,
    environment: account.environment,
    provider_deposit_id: deposit.providerDepositId,
  };
}

function dataOf(account: StoredDepositAccount, deposit: StoredDeposit) {
  const { amount, currency, paymentRail, senderName } = deposit;
  return {
    created_at: new Date(deposit.createdAtMs).toISOString(),
    source: {
      ...{ amount, currency },
      ...(paymentRail === null ? {} : { payment_rail: paymentRail }),
      ...(senderName === null ? {} : { sender_name: senderName }),
    },
    destination: { asset: account.asset, chain: account.chain },
  };
}
