import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type {
  AutomationActionConfig,
  AutomationConfig,
  CryptoDepositAddressRoute,
  SwapAttachmentParams,
} from '../../../generated/schemas.ts';
import { jsonText } from '../../../storage/sql-functions.ts';

/** A deposit address and its route, in wire form without the wallet. */
type DepositRouteView = Omit<CryptoDepositAddressRoute, 'wallet_id'>;

/** An attachment: the consent of a wallet's owner to let an automation use the wallet. */
export const AttachmentEntity = defineEntity({
  name: 'AutomationAttachment',
  tableName: 'wallet_automation_attachments',
  properties: {
    id: p.text().primary(),
    walletId: p.text(),
    automationId: p.text(),
    /** The parameters as in the request; null if it had none. */
    params: jsonText<SwapAttachmentParams>().strictNullable(),
    /** The key quorum that owned the wallet and gave the consent; null if the wallet had no owner. */
    agreedById: p.text().strictNullable(),
    /** Only for a crypto deposit account: the wallet that receives its deposits. */
    destinationWalletId: p.text().strictNullable(),
    /** Only for a crypto deposit account: identifies the route among all routes to the same destination. */
    routeKey: p.text().strictNullable(),
    /** Only for a crypto deposit account: its address and route. */
    route: jsonText<DepositRouteView>().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  uniques: [
    { name: 'wallet_automation_attachments_of_wallet', properties: ['walletId', 'automationId'] },
    // INVARIANT: one address per route.
    {
      name: 'wallet_automation_attachments_of_route',
      properties: ['destinationWalletId', 'routeKey'],
      where: 'destination_wallet_id is not null',
    },
  ],
  indexes: [{ name: 'wallet_automation_attachments_by_automation', properties: ['automationId'] }],
});

export type StoredAttachment = InferEntity<typeof AttachmentEntity>;

/** An automation: an action that runs for each matching deposit to an attached wallet. */
export const AutomationEntity = defineEntity({
  name: 'Automation',
  tableName: 'wallet_automations',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    name: p.text().strictNullable(),
    /** The key quorum that owns the automation; null without an owner. */
    ownerId: p.text().strictNullable(),
    /** 1 if the automation is enabled, otherwise 0. */
    isEnabled: p.integer(),
    /** 1 for the automation of a deposit address, which the operations on automations do not show; otherwise 0. */
    isManaged: p.integer().default(0),
    /** The configuration with asset and chain names resolved. */
    config: jsonText<AutomationConfig>(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
  },
  indexes: [
    { name: 'wallet_automations_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'wallet_automations_by_owner', properties: ['ownerId'], where: 'owner_id is not null' },
  ],
});

export type StoredAutomation = InferEntity<typeof AutomationEntity>;

/**
 * The work of an execution: the automation's action at the time when the deposit was detected, and the receiver of the
 * proceeds.
 */
type ExecutionAction = AutomationActionConfig & { readonly destination_address?: string };

/** An execution: one run of an automation's action, for one deposit. */
export const ExecutionEntity = defineEntity({
  name: 'AutomationExecution',
  tableName: 'wallet_automation_executions',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    walletId: p.text(),
    attachmentId: p.text(),
    automationId: p.text(),
    action: jsonText<ExecutionAction>(),
    /** The key quorum that owned the wallet and consented to the attachment; null if the wallet had no owner. */
    agreedById: p.text().strictNullable(),
    /** Only for an order of a crypto deposit account: the wallet that receives the proceeds. */
    destinationWalletId: p.text().strictNullable(),
    /** Only for a skipped execution: the execution that swept the deposit. */
    sweptById: p.text().strictNullable(),
    caip2: p.text(),
    /** The address of the deposited token, or `native`. */
    assetAddress: p.text(),
    /** `ChainTransfer.key` of the deposit. */
    transferKey: p.text(),
    transactionHash: p.text(),
    blockNumber: p.text(),
    /** A status of the API document. */
    status: p.text(),
    actionId: p.text().strictNullable(),
    failureReason: p.text().strictNullable(),
    /**
     * The maximum that the action may pay for gas, in base units, even if the gas is sponsored. Null before the action
     * is submitted.
     */
    gasCost: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    submittedAtMs: p.bigint('number').strictNullable(),
    completedAtMs: p.bigint('number').strictNullable(),
    failedAtMs: p.bigint('number').strictNullable(),
    updatedAtMs: p.bigint('number'),
    /** When a pending execution is run next; null once it is not pending. */
    nextRunAtMs: p.bigint('number').strictNullable(),
    /** The process that last moved `nextRunAtMs` to claim the execution; null before the first claim. */
    claimedBy: p.text().strictNullable(),
    /** Until this time, the execution is retried if a chain or service is unreachable. Null before the first run. */
    retryUntilMs: p.bigint('number').strictNullable(),
  },
  uniques: [
    // INVARIANT: one execution per deposit.
    {
      name: 'wallet_automation_executions_of_deposit',
      properties: ['walletId', 'caip2', 'transferKey'],
    },
  ],
  indexes: [
    { name: 'wallet_automation_executions_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'wallet_automation_executions_by_wallet', properties: ['walletId', 'createdAtMs', 'id'] },
    {
      name: 'wallet_automation_executions_by_destination',
      properties: ['destinationWalletId', 'createdAtMs', 'id'],
      where: 'destination_wallet_id is not null',
    },
    {
      name: 'wallet_automation_executions_due',
      properties: ['nextRunAtMs', 'id'],
      where: 'next_run_at_ms is not null',
    },
    {
      name: 'wallet_automation_executions_by_action',
      properties: ['actionId'],
      where: 'action_id is not null',
    },
    {
      name: 'wallet_automation_executions_open',
      properties: ['walletId', 'caip2', 'assetAddress', 'createdAtMs', 'id'],
      where: "status in ('pending', 'submitted')",
    },
  ],
});

export type StoredExecution = InferEntity<typeof ExecutionEntity>;
