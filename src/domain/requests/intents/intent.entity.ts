import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable } from 'kysely';
import type { Tables } from '../../tables.ts';

/**
 * A key quorum that may authorize an intent, for look-ups by member. A change of the resource's owner or signers
 * dismisses the intent, so the rows are valid while the intent is pending.
 */
export const IntentPartyEntity = defineEntity({
  name: 'IntentParty',
  tableName: 'intent_parties',
  properties: {
    intentId: p.text().primary(),
    keyQuorumId: p.text().primary(),
    /** The position among the parties; the owner comes first. */
    position: p.integer(),
  },
  indexes: [{ name: 'intent_parties_by_quorum', properties: ['keyQuorumId', 'intentId'] }],
});

/** A member's signature for an intent. Members sign once and cannot withdraw a signature. */
export const IntentSignatureEntity = defineEntity({
  name: 'IntentSignature',
  tableName: 'intent_signatures',
  properties: {
    intentId: p.text().primary(),
    /** `public_key` or `user`, the same as for members of key quorums. */
    kind: p.text().primary(),
    /** Canonical base64 SubjectPublicKeyInfo, or user id. */
    member: p.text().primary(),
    /** The key that verified the signature: the member itself, or one of the user's keys. */
    publicKey: p.text(),
    /** The signature in base64, as received. Null when an earlier version received it. */
    signature: p.text().strictNullable(),
    /** The canonical payload that was signed. Null when `signature` is null. */
    payload: p.text().strictNullable(),
    /** The signing time that the member claimed. */
    signedAtMs: p.bigint('number'),
    /** When this server received the signature. */
    receivedAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'intent_signatures_by_member', properties: ['member', 'intentId'] }],
});

/** A proposed request, which is executed once enough members of a key quorum that may authorize it have signed it. */
export const IntentEntity = defineEntity({
  name: 'Intent',
  tableName: 'intents',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    /** The intent type of the API, for example `RULE`. */
    intentType: p.text(),
    status: p.text(),
    operationId: p.text(),
    /** JSON object of the operation's path parameters. */
    pathParameters: p.text(),
    /** The operation's body as JSON, with the field names of the API document; null when there is none. */
    body: p.text().strictNullable(),
    /** The absolute URL of the proposed request. */
    url: p.text(),
    /**
     * The resource that is changed or used. A direct change of the resource dismisses the intent. For rule intents,
     * it is the policy.
     */
    subjectId: p.text(),
    /** The `resource_id` that responses show. */
    resourceId: p.text(),
    /** The user who created the intent; null when the app secret created it. */
    createdById: p.text().strictNullable(),
    createdAtMs: p.bigint('number'),
    updatedAtMs: p.bigint('number'),
    /** The last millisecond at which the intent can be authorized. */
    expiresAtMs: p.bigint('number'),
    /** The `service-request-expiry` of the request that created the intent. It is part of the signed payload. */
    requestExpiryMs: p.bigint('number').strictNullable(),
    /** When the intent was rejected, dismissed or marked as expired; null for any other intent. */
    endedAtMs: p.bigint('number').strictNullable(),
    dismissalReason: p.text().strictNullable(),
    /** JSON in wire form: the eligible members and signatures at the last signature or at the execution. */
    authorizationDetails: p.text(),
    /** JSON of the outcome of the request in wire form; null before the execution. */
    actionResult: p.text().strictNullable(),
    /** The wallet action that the intent started, whose outcome settles the intent; null if there is none. */
    awaitedActionId: p.text().strictNullable(),
    /** The process that executes the intent; null before the execution. */
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

/**
 * A row of `intents` with the column names of the database.
 *
 * KYSELY: the condition for the intents that a caller may see has subqueries, and due intents are found by a literal
 * status, so that the database uses a partial index. All statements that read whole intents therefore share this one
 * form of a row.
 */
export type IntentRow = Omit<Selectable<Tables['intents']>, 'claimed_by'>;

/** The columns of `intents` that a view or verb reads. */
export const intentColumns = [
  'id',
  'app_id',
  'intent_type',
  'status',
  'operation_id',
  'path_parameters',
  'body',
  'url',
  'subject_id',
  'resource_id',
  'created_by_id',
  'created_at_ms',
  'updated_at_ms',
  'expires_at_ms',
  'request_expiry_ms',
  'ended_at_ms',
  'dismissal_reason',
  'authorization_details',
  'action_result',
  'awaited_action_id',
] as const satisfies readonly (keyof IntentRow)[];
