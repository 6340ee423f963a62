import type { LoadedQuorum } from '../../../authorization/quorum.ts';
import { countAgreement, countsInAgreement } from '../../../authorization/quorum.ts';
import type {
  IntentAuthorization,
  IntentAuthorizationKeyQuorumMember,
  IntentAuthorizationMember,
} from '../../../generated/schemas.ts';
import type { Agreement, OperationContext } from '../../../operation-context.ts';
import type { Member } from '../../access/key-quorums/list-memberships.ts';
import { loadQuorums } from '../../access/owners/load-quorums.ts';
import type { Tables } from '../../tables.ts';
import { agreementOf, type IntentSignature, listSignatures } from './signatures.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

type DetailsContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** The eligible members and signatures of these intents, by intent, according to the current key quorums. */
export async function readAuthorizationDetails(
  context: DetailsContext,
  intentIds: readonly string[],
): Promise<Map<string, IntentAuthorization[]>> {
  if (intentIds.length === 0) return new Map();
  const parties = await context.em
    .getKysely<Tables>()
    .selectFrom('intent_parties')
    .select(['intent_id', 'key_quorum_id'])
    .where('intent_id', 'in', [...intentIds])
    .orderBy('position')
    .execute();
  const quorumIds = [...new Set(parties.map((party) => party.key_quorum_id))];
  const quorums = await loadQuorums(context, quorumIds);
  const partiesOf = Map.groupBy(parties, (party) => party.intent_id);
  const signaturesOf = Map.groupBy(await listSignatures(context, intentIds), ({ intentId }) => intentId);
  return new Map(
    intentIds.map((id) => {
      const signatures = signaturesOf.get(id) ?? [];
      const ofIntent = (partiesOf.get(id) ?? []).flatMap((party) => quorums.get(party.key_quorum_id) ?? []);
      return [id, authorizationDetails(ofIntent, id, signatures)];
    }),
  );
}

/** One entry for each key quorum that may authorize an intent. */
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

/** A key or a user as a member who can sign. */
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
