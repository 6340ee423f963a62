import assert from 'node:assert/strict';
import { expiredKeys, quorumKeys } from '../../../engine/authorization/quorum.ts';
import { verifySignatures } from '../../../engine/authorization/request-signatures.ts';
import { inSlices } from '../../../engine/in-slices.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import { type OperationId, operations } from '../../../generated/operations.ts';
import type { AuthorizeIntentRequest, IntentResponse } from '../../../generated/schemas.ts';
import type { OperationContext, Planned } from '../../../ports/operation-context.ts';
import type { Member } from '../../access/key-quorums/find-key-quorum.ts';
import { lockKeyQuorumsForShare } from '../../access/key-quorums/key-quorum.ts';
import {
  type EligibleParty,
  explainRefused,
  findAgreed,
  loadParties,
} from '../../access/owners/require-authorization.ts';
import { recordEvent } from '../../base/events/events.ts';
import { useForIntent } from '../../base/replay-protection/single-use-signatures.ts';
import type { Tables } from '../../tables.ts';
import { UserKeyEntity } from '../../wallets/user-keys/user-key.entity.ts';
import { executeIntent } from './execute-intent.ts';
import { findIntent, findPendingForUpdate, reloadIntent } from './find-intent.ts';
import { IntentEntity, type IntentRow, IntentSignatureEntity } from './intent.entity.ts';
import {
  agreementOf,
  authorizationDetails,
  intentSummary,
  isStale,
  listSignatures,
  membersWithKey,
  memberView,
  readIntentView,
} from './intent-view.ts';
import { type AnyInput, type AnyProposal, proposalOf, type Subject } from './proposals.ts';

/** Fills the parameters into the path template of an operation. */
export function fillTemplate(template: string, path: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
}

// KYSELY: an insertion that reports whether the member had already signed.

/** CHOICE: the maximum difference between a member's clock and ours. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** A pending intent with its resource, both locked until the transaction ends. */
interface HeldIntent {
  readonly intent: IntentRow;
  readonly proposal: AnyProposal;
  readonly subject: Subject<unknown>;
  readonly input: AnyInput;
}

interface AuthorizeIntentInput {
  readonly id: string;
  readonly body: AuthorizeIntentRequest;
  /** The result of `planProposed`. */
  readonly planned: Planned<unknown>;
}

/**
 * Adds a member's signature to an intent. If the signature completes a key quorum, the verb of the direct operation
 * executes the request in the same transaction. Times are Unix ms.
 *
 * @returns the intent after this signature, and after its execution if this was the last signature that it needed.
 * @throws ApiError not_found; invalid_data for a timestamp in the future or outside the user key's lifetime;
 * invalid_state for an intent that is not pending; zero_correct_authorization_signatures, user_session_keys_expired,
 * no_valid_user_session_keys for a signature that no eligible member made.
 */
export async function authorizeIntent(
  context: OperationContext,
  { id, body: { signature, timestamp }, planned }: AuthorizeIntentInput,
): Promise<IntentResponse> {
  if (timestamp > context.nowMs + CLOCK_SKEW_MS) {
    throw invalidField('/timestamp', `is in the future: the server's time is ${context.nowMs}`);
  }
  const held = await hold(context, id);
  const { intent } = held;
  const parties = await eligibleParties(context, held);
  const { key, payload } = await requireMemberKey(context, held, { signature, parties });
  const members = membersWithKey(parties, key);
  await requireWithinKeyLifetime(context, { key, members, timestamp });
  const signed = { key, members, timestamp, signature, payload };
  await dropStale(context, { intentId: intent.id, parties, members });
  const added = await addSignatures(context, { intentId: intent.id, ...signed });

  const signatures = await listSignatures(context, [intent.id]);
  const quorums = new Map(parties.map(({ quorum }) => [quorum.id, quorum]));
  const details = JSON.stringify(authorizationDetails([...quorums.values()], intent.id, signatures));
  const agreement = agreementOf(intent.id, signatures);
  const party = findAgreed(parties, agreement);
  if (added.length > 0 || party !== undefined) await storeDetails(context, intent.id, details);
  for (const member of added) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'intent.authorized',
      payload: {
        ...intentSummary(intent),
        authorized_at: context.nowMs,
        member: memberView(member, timestamp),
      },
    });
  }
  if (party !== undefined) await executeIntent(context, { ...held, party, agreement, planned });
  return readIntentView(context, await reloadIntent(context, intent.id));
}

// INVARIANT: the lock order is resource, intent, key quorums. A direct change locks the resource before it dismisses
// intents, so the two cannot deadlock.
async function hold(context: OperationContext, id: string): Promise<HeldIntent> {
  const seen = await findIntent(context, id);
  const proposal = proposalOf(seen.operation_id);
  const input = {
    path: JSON.parse(seen.path_parameters) as AnyInput['path'],
    body: seen.body === null ? undefined : JSON.parse(seen.body),
  };
  const subject = await proposal.hold(context, input.path).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'not_found') return undefined;
    throw error;
  });
  const intent = await findPendingForUpdate(context, id);
  assert(subject !== undefined, `intent ${id} is pending and its resource is gone`);
  return { intent, proposal, subject, input };
}

async function eligibleParties(
  context: OperationContext,
  { intent, proposal, subject, input }: HeldIntent,
): Promise<EligibleParty[]> {
  const { ownerId } = subject;
  assert(ownerId !== null, `intent ${intent.id} is pending and its resource has no owner`);
  const signers = proposal.signers?.(subject, input) ?? [];
  await lockKeyQuorumsForShare(context, [ownerId, ...signers.map(({ signerId }) => signerId)]);
  return loadParties(context, { ownerId, signers }, intent.id);
}

/** Returns the member's key that verifies the signature, and the signed payload, which from now on counts as used. */
async function requireMemberKey(
  context: OperationContext,
  { intent, input }: HeldIntent,
  { signature, parties }: { signature: string; parties: readonly EligibleParty[] },
): Promise<{ key: string; payload: Uint8Array }> {
  const { method, path } = operations[intent.operation_id as OperationId];
  const expiryMs = intent.request_expiry_ms ?? undefined;
  const payloads = context.proof.payloadsOf({
    method,
    path: fillTemplate(path, input.path),
    url: intent.url,
    body: input.body,
    expiryMs,
  });
  const live = parties.flatMap(({ quorum }) => quorumKeys(quorum));
  const expired = parties.flatMap(({ quorum }) => expiredKeys(quorum));
  const verified = await inSlices(
    verifySignatures({ signatures: [signature], payloads, keys: [...live, ...expired] }),
  );
  const [key] = verified.keys;
  if (key !== undefined && live.includes(key)) {
    const [index] = verified.payloadIndices;
    const payload = payloads[index!]!;
    await useForIntent(context, { intentId: intent.id, payload, expiryMs });
    return { key, payload };
  }
  const isUserWithoutKeys = live.length === 0 && key === undefined;
  throw new ApiError(
    key !== undefined
      ? 'user_session_keys_expired'
      : isUserWithoutKeys
        ? 'no_valid_user_session_keys'
        : 'zero_correct_authorization_signatures',
    undefined,
    context.diagnostics
      ? { data: await explainRefused(context, { signatures: [signature], payloads, verified, parties }) }
      : {},
  );
}

interface NewSignature {
  readonly key: string;
  readonly members: readonly Member[];
  readonly timestamp: number;
}

/**
 * Refuses a timestamp at which the user's key was not valid.
 *
 * CHOICE: a user's key must also be valid now, which `requireMemberKey` checks. The timestamp is not signed, so the
 * holder of an expired key could claim any time.
 *
 * @throws ApiError invalid_data
 */
async function requireWithinKeyLifetime(
  { app, em }: OperationContext,
  { key, members, timestamp }: NewSignature,
): Promise<void> {
  const userIds = members.filter(({ kind }) => kind === 'user').map(({ member }) => member);
  if (userIds.length === 0) return;
  const keys = await em.find(
    UserKeyEntity,
    { appId: app.id, userId: { $in: userIds }, publicKey: key },
    { disableIdentityMap: true },
  );
  const isWithin = keys.every(
    ({ createdAtMs, expiresAtMs }) => createdAtMs - CLOCK_SKEW_MS <= timestamp && timestamp < expiresAtMs,
  );
  if (!isWithin) throw invalidField('/timestamp', 'the user key was not valid at that time');
}

interface StoredSignature extends NewSignature {
  readonly intentId: string;
  /** The signature in base64. */
  readonly signature: string;
  readonly payload: Uint8Array;
}

/** Removes those signatures of the given members that no longer count, so that the members can sign again. */
async function dropStale(
  { em }: OperationContext,
  {
    intentId,
    parties,
    members,
  }: {
    readonly intentId: string;
    readonly parties: readonly EligibleParty[];
    readonly members: readonly Member[];
  },
): Promise<void> {
  for (const signature of await listSignatures({ em }, [intentId])) {
    const { kind, member } = signature;
    const signsNow = members.some((each) => each.kind === kind && each.member === member);
    if (!signsNow || !isStale(parties, signature)) continue;
    await em.nativeDelete(IntentSignatureEntity, { intentId, kind, member });
  }
}

/**
 * Stores the signature for each of the members, unless the member had already signed. Returns the members who had not.
 */
async function addSignatures(
  { em, nowMs }: OperationContext,
  { intentId, key, members, timestamp, signature, payload }: StoredSignature,
): Promise<Member[]> {
  const added: Member[] = [];
  for (const member of members) {
    const { numInsertedOrUpdatedRows } = await em
      .getKysely<Tables>()
      .insertInto('intent_signatures')
      .values({
        intent_id: intentId,
        ...member,
        public_key: key,
        signature,
        payload: Buffer.from(payload).toString('utf8'),
        signed_at_ms: timestamp,
        received_at_ms: nowMs,
      })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 1n) added.push(member);
  }
  return added;
}

async function storeDetails({ em, nowMs }: OperationContext, id: string, details: string): Promise<void> {
  await em.nativeUpdate(IntentEntity, { id }, { authorizationDetails: details, updatedAtMs: nowMs });
}
