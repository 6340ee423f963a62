import { defineEntity, p } from '@mikro-orm/core';

/** A request that is proposed: it is carried out once enough of those who own its resource have signed it. */
export const IntentEntity = defineEntity({
  name: 'Intent',
  tableName: 'intents',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** The contract's kind, `RULE` for instance. */
    intentType: p.text(),
    status: p.text(),
    /** The operation that is proposed, by its id. */
    operationId: p.text(),
    /** JSON object of the operation's path parameters. */
    pathParameters: p.text(),
    /** The operation's body as JSON, in the contract's words; null when it has none. */
    body: p.text().strictNullable(),
    /** The absolute URL of the proposed request. */
    url: p.text(),
    /** What is changed or used, and whose change dismisses the intent: a policy also where `resourceId` is a rule. */
    subjectId: p.text(),
    /** What the intent is said to be about. */
    resourceId: p.text(),
    /** The user who made it; null when it was made with the app secret. */
    createdById: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /** The last millisecond at which it can be signed. */
    expiresAtMs: p.bigint('number'),
    /** The `service-request-expiry` that it was made with, which is part of what is signed. */
    requestExpiryMs: p.bigint('number').strictNullable(),
    /** When it was rejected, dismissed, or found to have expired. */
    endedAtMs: p.bigint('number').strictNullable(),
    dismissalReason: p.text().strictNullable(),
    /** JSON as answered: who could sign and who had, when it was last signed or carried out. */
    authorizationDetails: p.text(),
    /** JSON as answered: how the request went. */
    actionResult: p.text().strictNullable(),
    /** The wallet action that it has begun and whose end is the intent's; null when there is none. */
    awaitedActionId: p.text().strictNullable(),
  },
  indexes: [
    { name: 'intents_by_age', properties: ['appId', 'createdAtMs', 'id'] },
    { name: 'intents_by_expiry', properties: ['appId', 'expiresAtMs', 'id'] },
    { name: 'intents_by_change', properties: ['appId', 'updatedAtMs', 'id'] },
    { name: 'intents_by_status', properties: ['appId', 'status', 'createdAtMs', 'id'] },
    { name: 'intents_by_status_expiry', properties: ['appId', 'status', 'expiresAtMs', 'id'] },
    { name: 'intents_by_status_change', properties: ['appId', 'status', 'updatedAtMs', 'id'] },
    { name: 'intents_by_resource', properties: ['resourceId', 'createdAtMs', 'id'] },
    {
      name: 'intents_by_creator',
      properties: ['createdById', 'createdAtMs', 'id'],
      where: 'created_by_id is not null',
    },
    { name: 'intents_pending_by_subject', properties: ['subjectId'], where: "status = 'pending'" },
    { name: 'intents_pending_by_expiry', properties: ['expiresAtMs', 'id'], where: "status = 'pending'" },
    {
      name: 'intents_by_awaited_action',
      properties: ['awaitedActionId'],
      where: 'awaited_action_id is not null',
    },
    { name: 'intents_processing', properties: ['updatedAtMs', 'id'], where: "status = 'processing'" },
  ],
});
