import { defineEntity, p } from '@mikro-orm/core';

/** A proposed request, executed once enough owners of its resource have signed it. */
export const IntentEntity = defineEntity({
  name: 'Intent',
  tableName: 'intents',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** The contract's intent type, for example `RULE`. */
    intentType: p.text(),
    status: p.text(),
    /** The id of the proposed operation. */
    operationId: p.text(),
    /** JSON object of the operation's path parameters. */
    pathParameters: p.text(),
    /** The operation's body as JSON, with the contract's field names; null when it has none. */
    body: p.text().strictNullable(),
    /** The absolute URL of the proposed request. */
    url: p.text(),
    /**
     * The resource that is changed or used. A direct change of it dismisses the intent. For rule intents this is the
     * policy.
     */
    subjectId: p.text(),
    /** The `resource_id` shown in the contract. */
    resourceId: p.text(),
    /** The user who created it; null when created with the app secret. */
    createdById: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /** The last millisecond at which it can be authorized. */
    expiresAtMs: p.bigint('number'),
    /** The `service-request-expiry` of its creation, which is part of the signed payload. */
    requestExpiryMs: p.bigint('number').strictNullable(),
    /** When it was rejected, dismissed or marked as expired. */
    endedAtMs: p.bigint('number').strictNullable(),
    dismissalReason: p.text().strictNullable(),
    /** JSON in wire form: eligible members and signatures as of the last signature or the execution. */
    authorizationDetails: p.text(),
    /** JSON in wire form: the outcome of the request. */
    actionResult: p.text().strictNullable(),
    /** The wallet action it started, whose outcome settles the intent; null without one. */
    awaitedActionId: p.text().strictNullable(),
    /** The process that executes it. */
    claimedBy: p.text().strictNullable(),
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
