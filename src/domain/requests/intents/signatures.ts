import { countsInAgreement, type LoadedQuorum } from '../../../authorization/quorum.ts';
import type { SignedPayload } from '../../../authorization/signed-evidence.ts';
import type { Agreement, OperationContext } from '../../../operation-context.ts';
import type { Member } from '../../access/key-quorums/list-memberships.ts';
import type { EligibleParty } from '../../access/owners/require-owner.ts';
import type { Tables } from '../../tables.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

/** A member's signature of an intent. */
export interface IntentSignature extends Member {
  readonly intentId: string;
  /** The key that verified it: the member itself, or one of the user's keys. */
  readonly publicKey: string;
  /** Unix ms. */
  readonly signedAtMs: number;
  /** Undefined for one that was received by an earlier version. */
  readonly signed: SignedPayload | undefined;
}

/** The signatures that count; those of deleted users no longer do, nor those of users who are frozen now. */
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

/** The signers of an intent that count as its agreement. */
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

/** One entry for each payload, because a vault takes few: members sign the same one, or one for another host. */
function byPayload(signed: readonly SignedPayload[]): SignedPayload[] {
  const groups = Map.groupBy(signed, ({ payload }) => payload);
  return [...groups].map(([payload, ofPayload]) => ({
    payload,
    signatures: ofPayload.flatMap(({ signatures }) => signatures),
  }));
}

/**
 * Whether a member has to sign again: a key quorum that the user is a member of does not count the signature any more.
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

/** The members of the parties that a key signs for, including members of nested quorums. */
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
