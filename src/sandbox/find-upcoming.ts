import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  AggregationEntity,
  AggregationRecordEntity,
} from '../domain/access/aggregations/aggregation.entity.ts';
import { listApps } from '../domain/access/apps/find-app.ts';
import { ExecutionEntity } from '../domain/access/automations/automation.entity.ts';
import { WebhookDeliveryEntity, WebhookSecretEntity } from '../domain/access/webhooks/webhook.entity.ts';
import { CardEntity } from '../domain/money/cards/card.entity.ts';
import { FiatCustomerEntity } from '../domain/money/fiat-customers/fiat-customer.entity.ts';
import {
  FiatDepositAccountEntity,
  FiatDepositEntity,
} from '../domain/money/fiat-deposits/fiat-deposit.entity.ts';
import { TransactionEntity } from '../domain/money/transactions/transaction.entity.ts';
import { WalletActionStepEntity } from '../domain/money/wallet-actions/wallet-action.entity.ts';
import { IntentEntity } from '../domain/requests/intents/intent.entity.ts';
import { showUserCode } from '../domain/wallets/oauth/device-codes.ts';
import { OauthDeviceCodeEntity } from '../domain/wallets/oauth/oauth.entity.ts';
import { UserKeyEntity } from '../domain/wallets/user-keys/user-key.entity.ts';
import { WalletImportEntity } from '../domain/wallets/wallets/wallet.entity.ts';
import type { SandboxUpcomingKind } from './generated/schemas.ts';

/** Something that happens when the sandbox's clock reaches `atMs`. At `atMs` itself, it has happened. */
export interface Upcoming {
  readonly atMs: number;
  readonly kind: SandboxUpcomingKind;
  readonly resourceId: string;
}

interface Search {
  readonly em: SqlEntityManager;
  readonly nowMs: number;
  /** The maximum number of results per source, earliest first. */
  readonly limit: number;
  /** Only these kinds are searched. By default, all kinds. */
  readonly kinds?: ReadonlySet<SandboxUpcomingKind>;
}

type Source = (search: Search) => Promise<readonly Upcoming[]>;

/** Returns the events that happen after `nowMs`, earliest first. */
export async function findUpcoming(search: Search): Promise<readonly Upcoming[]> {
  const found: Upcoming[] = [];
  for (const [kind, source] of Object.entries(sources)) {
    if (search.kinds?.has(kind as SandboxUpcomingKind) ?? true) found.push(...(await source(search)));
  }
  return found
    .sort((left, right) => left.atMs - right.atMs || compareText(left.kind, right.kind))
    .slice(0, search.limit);
}

function compareText(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

const intents: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    IntentEntity,
    { status: 'pending', expiresAtMs: { $gte: nowMs } },
    { fields: ['id', 'expiresAtMs'], orderBy: { expiresAtMs: 'asc', id: 'asc' }, limit },
  );
  // An intent can still be authorized at `expiresAtMs`.
  return rows.map((row) => ({ atMs: row.expiresAtMs + 1, kind: 'intent_expires', resourceId: row.id }));
};

const deliveries: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    WebhookDeliveryEntity,
    { nextAttemptAtMs: { $gt: nowMs } },
    { fields: ['eventId', 'nextAttemptAtMs'], orderBy: { nextAttemptAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({
    atMs: row.nextAttemptAtMs!,
    kind: 'webhook_attempt',
    resourceId: row.eventId,
  }));
};

const webhookSecrets: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    WebhookSecretEntity,
    { expiresAtMs: { $gt: nowMs } },
    { fields: ['endpointId', 'expiresAtMs'], orderBy: { expiresAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({
    atMs: row.expiresAtMs!,
    kind: 'webhook_secret_expires',
    resourceId: row.endpointId,
  }));
};

const appSecrets: Source = async ({ em, nowMs }) =>
  (await listApps(em)).flatMap(({ id, secretHashes }) =>
    secretHashes.flatMap(({ expiresAtMs }) =>
      expiresAtMs !== null && expiresAtMs > nowMs
        ? [{ atMs: expiresAtMs, kind: 'app_secret_expires' as const, resourceId: id }]
        : [],
    ),
  );

/** Requests that were counted at the same time leave the window of their total at the same time. */
const runningTotals: Source = async ({ em, nowMs, limit }) => {
  const aggregations = await em.find(AggregationEntity, {}, { fields: ['id', 'windowSeconds'] });
  const byWindow = Map.groupBy(aggregations, ({ windowSeconds }) => windowSeconds * 1000);
  const found = new Map<string, Upcoming>();
  for (const [windowMs, members] of byWindow) {
    const rows = await em.find(
      AggregationRecordEntity,
      { aggregationId: { $in: members.map(({ id }) => id) }, recordedAtMs: { $gt: nowMs - windowMs } },
      { fields: ['aggregationId', 'recordedAtMs'], orderBy: { recordedAtMs: 'asc', id: 'asc' }, limit },
    );
    for (const { aggregationId, recordedAtMs } of rows) {
      const atMs = recordedAtMs + windowMs;
      found.set(`${atMs} ${aggregationId}`, { atMs, kind: 'total_decreases', resourceId: aggregationId });
    }
  }
  return [...found.values()];
};

const automations: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    ExecutionEntity,
    { nextRunAtMs: { $gt: nowMs } },
    { fields: ['id', 'nextRunAtMs'], orderBy: { nextRunAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextRunAtMs!, kind: 'automation_run', resourceId: row.id }));
};

const transactions: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    TransactionEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['id', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs!, kind: 'transaction_check', resourceId: row.id }));
};

const actions: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    WalletActionStepEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['actionId', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', actionId: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs!, kind: 'action_check', resourceId: row.actionId }));
};

const customers: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    FiatCustomerEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['entityId', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs, kind: 'customer_check', resourceId: row.entityId }));
};

const depositAccounts: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    FiatDepositAccountEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['id', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs!, kind: 'deposit_account_check', resourceId: row.id }));
};

const deposits: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    FiatDepositEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['id', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs!, kind: 'deposit_check', resourceId: row.id }));
};

const cards: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    CardEntity,
    { nextCheckAtMs: { $gt: nowMs } },
    { fields: ['id', 'nextCheckAtMs'], orderBy: { nextCheckAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.nextCheckAtMs!, kind: 'card_check', resourceId: row.id }));
};

const deviceCodes: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    OauthDeviceCodeEntity,
    { status: { $in: ['pending', 'approved'] }, expiresAtMs: { $gt: nowMs } },
    { fields: ['userCode', 'expiresAtMs'], orderBy: { expiresAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({
    atMs: row.expiresAtMs,
    kind: 'device_code_expires',
    resourceId: showUserCode(row.userCode),
  }));
};

const userKeys: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    UserKeyEntity,
    { expiresAtMs: { $gt: nowMs } },
    { fields: ['userId', 'expiresAtMs'], orderBy: { expiresAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({ atMs: row.expiresAtMs, kind: 'user_key_expires', resourceId: row.userId }));
};

const walletImports: Source = async ({ em, nowMs, limit }) => {
  const rows = await em.find(
    WalletImportEntity,
    { expiresAtMs: { $gt: nowMs } },
    { fields: ['address', 'expiresAtMs'], orderBy: { expiresAtMs: 'asc', id: 'asc' }, limit },
  );
  return rows.map((row) => ({
    atMs: row.expiresAtMs,
    kind: 'wallet_import_expires',
    resourceId: row.address,
  }));
};

const sources: Readonly<Record<SandboxUpcomingKind, Source>> = {
  intent_expires: intents,
  webhook_attempt: deliveries,
  webhook_secret_expires: webhookSecrets,
  app_secret_expires: appSecrets,
  total_decreases: runningTotals,
  automation_run: automations,
  transaction_check: transactions,
  action_check: actions,
  customer_check: customers,
  deposit_account_check: depositAccounts,
  deposit_check: deposits,
  card_check: cards,
  device_code_expires: deviceCodes,
  user_key_expires: userKeys,
  wallet_import_expires: walletImports,
};
