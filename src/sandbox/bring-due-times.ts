import type { SqlEntityManager } from '@mikro-orm/sql';
import { WebhookDeliveryEntity, WebhookEndpointEntity } from '../domain/access/webhooks/webhook.entity.ts';
import { FiatCustomerEntity } from '../domain/money/fiat-customers/fiat-customer.entity.ts';
import { TransactionEntity } from '../domain/money/transactions/transaction.entity.ts';
import { WalletActionStepEntity } from '../domain/money/wallet-actions/wallet-action.entity.ts';

/** Longer than any check or retry is planned ahead. */
export const LONGEST_PLAN_MS = 24 * 3_600_000;

/**
 * Makes due at `nowMs` what was planned for later than `laterThanMs`. After the clock was set back, those times may lie
 * years ahead. A check or a delivery that comes too early only finds that there is nothing to do yet.
 */
export async function bringDueTimesTo(
  em: SqlEntityManager,
  nowMs: number,
  laterThanMs: number = nowMs,
): Promise<void> {
  const isLater = { $gt: laterThanMs };
  await em.nativeUpdate(TransactionEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(WalletActionStepEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(FiatCustomerEntity, { nextCheckAtMs: isLater }, { nextCheckAtMs: nowMs });
  await em.nativeUpdate(WebhookDeliveryEntity, { nextAttemptAtMs: isLater }, { nextAttemptAtMs: nowMs });
  await em.nativeUpdate(WebhookEndpointEntity, { nextDueAtMs: isLater }, { nextDueAtMs: nowMs });
}
