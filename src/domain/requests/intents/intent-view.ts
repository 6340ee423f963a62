import {
  countAgreement,
  countsInAgreement,
  type LoadedQuorum,
} from '../../../engine/authorization/quorum.ts';
import type { SignedPayload } from '../../../engine/authorization/signed-evidence.ts';
import { type OperationId, operations } from '../../../generated/operations.ts';
import type {
  ConditionSet,
  IntentAuthorization,
  IntentAuthorizationKeyQuorumMember,
  IntentAuthorizationMember,
  IntentResponse,
  IntentType,
  KeyQuorum,
  Policy,
  PolicyRuleResponse,
  Wallet,
} from '../../../generated/schemas.ts';
import type { Agreement, OperationContext } from '../../../ports/operation-context.ts';
import { conditionSetView, listConditionSetsOfIds } from '../../access/condition-sets/condition-set.ts';
import { keyQuorumView, listKeyQuorumsOfIds, type Member } from '../../access/key-quorums/find-key-quorum.ts';
import { loadQuorums } from '../../access/owners/owner-quorums.ts';
import type { EligibleParty } from '../../access/owners/require-authorization.ts';
import { listPoliciesOfIds, policyView } from '../../access/policies/find-policy.ts';
import type { Tables } from '../../tables.ts';
import { listWalletsOfIds, walletView } from '../../wallets/wallets/find-wallet.ts';
import { statusAt } from './find-intent.ts';
import { IntentPartyEntity, type IntentRow } from './intent.entity.ts';

// KYSELY: joins the signatures of an intent with their users, who may be frozen.

interface IntentSignature extends Member {
  readonly intentId: string;
  /** The key that verified the signature: the member itself, or one of the user's keys. */
  readonly publicKey: string;
  /** The signing time that the member claimed, Unix ms. */
  readonly signedAtMs: number;
  /** The payload with its signature. Undefined for a signature that an earlier version received. */
  readonly signed: SignedPayload | undefined;
}

/** Lists the signatures that count. Signatures of deleted or frozen users do not count. */
export async function listSignatures(
  { em }: Pick<OperationContext, 'em'>,
  intentIds: readonly string[],
): Promise<IntentSignature[]> {
  if (intentIds.length === 0) return [];
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('intent_signatures as signature')
    .leftJoin('users', 'users.id', 'signature.member')
    .select(['signature.intent_id', 'signature.kind', 'signature.member', 'signature.signed_at_ms'])
    .select(['signature.public_key', 'signature.signature', 'signature.payload'])
    .where('signature.intent_id', 'in', [...intentIds])
    .where(({ and, eb, or }) =>
      or([
        eb('signature.kind', '=', 'public_key'),
        and([eb('users.id', 'is not', null), eb('users.frozen_at_ms', 'is', null)]),
      ]),
    )
    .execute();
  return rows.map((row) => ({
    intentId: row.intent_id,
    kind: row.kind as Member['kind'],
    member: row.member,
    publicKey: row.public_key,
    signedAtMs: row.signed_at_ms,
    signed:
      row.signature === null || row.payload === null
        ? undefined
        : { payload: row.payload, signatures: [row.signature] },
  }));
}

/** Returns the agreement of an intent's signers, under which it is executed. */
export function agreementOf(intentId: string, signatures: readonly IntentSignature[]): Agreement {
  const ofKind = (kind: Member['kind']) => signatures.filter((signature) => signature.kind === kind);
  const signed = signatures.flatMap((signature) => signature.signed ?? []);
  return {
    intentId,
    publicKeys: ofKind('public_key').map(({ member }) => member),
    userKeys: new Map(ofKind('user').map(({ member, publicKey }) => [member, publicKey])),
    evidence: signed.length < signatures.length ? undefined : { requests: byPayload(signed) },
  };
}

/**
 * Merges the signatures by payload. Members usually sign the same payload, or one for another host, and the key store
 * accepts only a few payloads.
 */
function byPayload(signed: readonly SignedPayload[]): SignedPayload[] {
  const groups = Map.groupBy(signed, ({ payload }) => payload);
  return [...groups].map(([payload, ofPayload]) => ({
    payload,
    signatures: ofPayload.flatMap(({ signatures }) => signatures),
  }));
}

/**
 * Returns whether a user must sign the intent again: a key quorum that contains the user no longer counts this
 * signature.
 */
export function isStale(
  parties: readonly EligibleParty[],
  { kind, member, publicKey }: IntentSignature,
): boolean {
  if (kind !== 'user') return false;
  const lacksIt = (quorum: LoadedQuorum): boolean =>
    (quorum.users.some(({ userId }) => userId === member) &&
      !countsInAgreement(quorum, { userId: member, publicKey })) ||
    quorum.quorums.some(lacksIt);
  return parties.some(({ quorum }) => lacksIt(quorum));
}

/** Returns the members of the parties for whom a key signs, including members of nested quorums. */
export function membersWithKey(parties: readonly EligibleParty[], key: string): Member[] {
  const members = parties.flatMap(({ quorum }) => membersIn(quorum, key));
  return members.filter(
    ({ kind, member }, index) =>
      members.findIndex((other) => other.kind === kind && other.member === member) === index,
  );
}

function membersIn(quorum: LoadedQuorum, key: string): Member[] {
  return [
    ...quorum.publicKeys
      .filter((own) => own === key)
      .map((member) => ({ kind: 'public_key', member }) as const),
    ...quorum.users
      .filter((user) => user.liveKeys.includes(key))
      .map(({ userId }) => ({ kind: 'user', member: userId }) as const),
    ...quorum.quorums.flatMap((nested) => membersIn(nested, key)),
  ];
}

type DetailsContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** Reads, for each of these intents, the eligible members of the current key quorums and the signatures. */
async function readAuthorizationDetails(
  context: DetailsContext,
  intentIds: readonly string[],
): Promise<Map<string, IntentAuthorization[]>> {
  if (intentIds.length === 0) return new Map();
  const parties = await context.em.find(
    IntentPartyEntity,
    { intentId: { $in: [...intentIds] } },
    { orderBy: { position: 'asc' }, disableIdentityMap: true },
  );
  const quorumIds = [...new Set(parties.map((party) => party.keyQuorumId))];
  const quorums = await loadQuorums(context, quorumIds);
  const partiesOf = Map.groupBy(parties, (party) => party.intentId);
  const signaturesOf = Map.groupBy(await listSignatures(context, intentIds), ({ intentId }) => intentId);
  return new Map(
    intentIds.map((id) => {
      const signatures = signaturesOf.get(id) ?? [];
      const ofIntent = (partiesOf.get(id) ?? []).flatMap((party) => quorums.get(party.keyQuorumId) ?? []);
      return [id, authorizationDetails(ofIntent, id, signatures)];
    }),
  );
}

/** Returns one entry for each key quorum that may authorize an intent. */
export function authorizationDetails(
  quorums: readonly LoadedQuorum[],
  intentId: string,
  signatures: readonly IntentSignature[],
): IntentAuthorization[] {
  const agreement = agreementOf(intentId, signatures);
  return quorums.map((quorum) => ({
    ...nameOf(quorum),
    threshold: countAgreement(quorum, agreement).threshold,
    members: [
      ...leavesOf(quorum, signatures),
      ...quorum.quorums.map((nested) => nestedView(nested, agreement, signatures)),
    ],
  }));
}

function nestedView(
  quorum: LoadedQuorum,
  agreement: Agreement,
  signatures: readonly IntentSignature[],
): IntentAuthorizationMember {
  const { threshold, satisfied } = countAgreement(quorum, agreement);
  return {
    type: 'key_quorum',
    key_quorum_id: quorum.id,
    ...nameOf(quorum),
    threshold,
    threshold_met: satisfied,
    members: leavesOf(quorum, signatures),
  };
}

function leavesOf(
  quorum: LoadedQuorum,
  signatures: readonly IntentSignature[],
): IntentAuthorizationKeyQuorumMember[] {
  const view = (member: Member) => {
    const signature = signatures.find(
      (own) => own.kind === member.kind && own.member === member.member && counts(quorum, own),
    );
    return memberView(member, signature?.signedAtMs ?? null);
  };
  return [
    ...quorum.publicKeys.map((member) => view({ kind: 'public_key', member })),
    ...quorum.users.map(({ userId }) => view({ kind: 'user', member: userId })),
  ];
}

function counts(quorum: LoadedQuorum, { kind, member: userId, publicKey }: IntentSignature): boolean {
  return kind !== 'user' || countsInAgreement(quorum, { userId, publicKey });
}

/** Returns a key or a user as a member that can sign. */
export function memberView(
  { kind, member }: Member,
  signedAtMs: number | null,
): IntentAuthorizationKeyQuorumMember {
  return kind === 'user'
    ? { type: 'user', user_id: member, signed_at: signedAtMs }
    : { type: 'key', public_key: member, signed_at: signedAtMs };
}

function nameOf({ displayName }: LoadedQuorum): { display_name?: string } {
  return displayName === null ? {} : { display_name: displayName };
}

/** The current state of an intent's resource in the form that intents show. */
interface CurrentResource {
  readonly current_resource_data?: Wallet | Policy | PolicyRuleResponse | KeyQuorum | ConditionSet;
  readonly policy?: Policy;
}

type ReadContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * Reads the resources of these intents with one query for each kind. Returns a function that gives the resource of one
 * intent; its result is empty when the resource no longer exists.
 */
async function readResources(
  context: ReadContext,
  intents: readonly IntentRow[],
): Promise<(intent: IntentRow) => CurrentResource> {
  const idsOf = (...types: string[]) => [
    ...new Set(intents.filter((intent) => types.includes(intent.intent_type)).map((row) => row.subject_id)),
  ];
  const wallets = byId((await listWalletsOfIds(context, idsOf('RPC', 'TRANSFER', 'WALLET'))).map(walletView));
  const policies = byId((await listPoliciesOfIds(context, idsOf('POLICY', 'RULE'))).map(policyView));
  const quorums = byId((await listKeyQuorumsOfIds(context, idsOf('KEY_QUORUM'))).map(keyQuorumView));
  const sets = byId((await listConditionSetsOfIds(context, idsOf('CONDITION_SET'))).map(conditionSetView));
  return ({ intent_type: type, subject_id: subjectId, resource_id: resourceId }) => {
    if (type !== 'RULE') {
      const resource = [wallets, policies, quorums, sets].map((ofKind) => ofKind.get(subjectId));
      return present(
        'current_resource_data',
        resource.find((found) => found !== undefined),
      );
    }
    const policy = policies.get(subjectId);
    const rule = policy?.rules.find(({ id }) => id === resourceId);
    return { ...present('current_resource_data', rule), ...present('policy', policy) };
  };
}

function byId<Resource extends { id: string }>(resources: readonly Resource[]): Map<string, Resource> {
  return new Map(resources.map((resource) => [resource.id, resource]));
}

function present<Name extends string, Value>(name: Name, value: Value | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: Value };
}

type ViewContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** Converts an intent to wire form, with the current state of its resource. */
export async function readIntentView(context: ViewContext, intent: IntentRow): Promise<IntentResponse> {
  const [view] = await readIntentViews(context, [intent]);
  return view!;
}

/**
 * Converts intents to wire form, in the same order. A pending intent shows the eligible signers of the current key
 * quorums. All others show the signers at the time when the intent ended.
 */
export async function readIntentViews(
  context: ViewContext,
  intents: readonly IntentRow[],
): Promise<IntentResponse[]> {
  const pending = intents.filter((intent) => statusAt(intent, context.nowMs) === 'pending');
  const details = await readAuthorizationDetails(
    context,
    pending.map(({ id }) => id),
  );
  const resourceOf = await readResources(context, intents);
  return intents.map((intent) =>
    intentView(intent, {
      nowMs: context.nowMs,
      details: details.get(intent.id) ?? JSON.parse(intent.authorization_details),
      resource: resourceOf(intent),
    }),
  );
}

function intentView(
  intent: IntentRow,
  { nowMs, details, resource }: { nowMs: number; details: IntentAuthorization[]; resource: CurrentResource },
): IntentResponse {
  const status = statusAt(intent, nowMs);
  const isDone = status === 'executed' || status === 'failed';
  const view = {
    ...intentSummary(intent),
    status,
    resource_id: intent.resource_id,
    authorization_details: details,
    custom_expiry: intent.request_expiry_ms !== null,
    request_details: {
      method: operations[intent.operation_id as OperationId].method,
      url: intent.url,
      ...(intent.body === null ? {} : { body: JSON.parse(intent.body) }),
    },
    ...resource,
    ...(status === 'rejected' ? { rejected_at: intent.ended_at_ms } : {}),
    ...(status === 'dismissed'
      ? { dismissed_at: intent.ended_at_ms, dismissal_reason: intent.dismissal_reason }
      : {}),
    ...(isDone && intent.action_result !== null ? { action_result: JSON.parse(intent.action_result) } : {}),
  };
  // The API has one schema per intent type. All differences between them come from the row.
  return view as IntentResponse;
}

/** Returns the fields that intents and their events have in common. */
export function intentSummary(intent: IntentRow) {
  return {
    intent_id: intent.id,
    intent_type: intent.intent_type as IntentType,
    status: intent.status,
    created_at: intent.created_at_ms,
    // CHOICE: a user is shown by id, because users have no single name.
    created_by_display_name: intent.created_by_id ?? 'API',
    ...(intent.created_by_id === null ? {} : { created_by_id: intent.created_by_id }),
    expires_at: intent.expires_at_ms,
  };
}
