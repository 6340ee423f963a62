import { strict as assert } from 'node:assert';
import { LRUCache } from 'lru-cache';
import { diagnoseSignatures, type Party } from '../../../engine/authorization/diagnose-signatures.ts';
import {
  countAgreement,
  countQuorum,
  expiredKeys,
  fewestSignatures,
  type LoadedQuorum,
  quorumKeys,
} from '../../../engine/authorization/quorum.ts';
import {
  type VerifiedSignatures,
  verifySignatures,
} from '../../../engine/authorization/request-signatures.ts';
import type { Evidence } from '../../../engine/authorization/signed-evidence.ts';
import { inSlices } from '../../../engine/in-slices.ts';
import { ApiError, type ErrorCode } from '../../../errors.ts';
import { inSpan } from '../../../observability/spans.ts';
import type { Agreement, OperationContext } from '../../../ports/operation-context.ts';
import { requireShortExpiry } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { loadQuorums, loadUserAsQuorum } from './owner-quorums.ts';

interface Refused {
  readonly signatures: readonly string[];
  readonly payloads: readonly Uint8Array[];
  readonly verified: VerifiedSignatures;
  readonly parties: readonly Party[];
}

interface SignatureReport {
  reason?: string;
  public_key?: string;
  key_quorum_ids?: string[];
  recovered_keys?: string[];
}

const MAX_KEYS = 50;
const MAX_QUORUMS = 5;

// KYSELY: joins tables of higher layers, whose entities cannot be imported here.

/**
 * Returns the `data` of an error about refused signatures: the result of `diagnoseSignatures`, completed by the users
 * and key quorums of the app to which the keys that signed belong.
 */
export async function explainRefused(
  context: OperationContext,
  refused: Refused,
): Promise<Record<string, unknown>> {
  const sentBody = context.proof.sentBody?.();
  const data = await inSlices(diagnoseSignatures({ ...refused, sentBody }));
  const { signatures } = data.signature_check as { readonly signatures: readonly SignatureReport[] };
  const recovered = signatures.flatMap(({ recovered_keys: keys = [] }) => keys).slice(0, MAX_KEYS);
  if (recovered.length === 0) return data;
  const quorums = await quorumsWith(context, recovered);
  const users = await usersWith(context, recovered);
  for (const report of signatures) {
    const key = report.recovered_keys?.find((candidate) => quorums.has(candidate) || users.has(candidate));
    if (key === undefined) continue;
    const found = quorums.get(key) ?? [];
    const user = users.get(key);
    const names = found.map(({ id, displayName }) =>
      displayName === null ? `\`${id}\`` : `\`${id}\` (${displayName})`,
    );
    delete report.recovered_keys;
    report.public_key = key;
    report.key_quorum_ids = found.map(({ id }) => id);
    const whose =
      user === undefined ? `a member of the key quorum ${names.join(', ')}` : `a key of the user \`${user}\``;
    report.reason = `the signature is right, but its key is not a member of the owner: it is ${whose}`;
  }
  return data;
}

async function usersWith({ app, em, prefix }: OperationContext, keys: readonly string[]) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('user_keys')
    .select(['public_key', 'user_id'])
    .where('app_id', '=', app.id)
    .where('public_key', 'in', [...new Set(keys)])
    .limit(MAX_KEYS)
    .execute();
  const named = (userId: string) => userId.replace(/^did:service:/, `did:${prefix}:`);
  return new Map(rows.map(({ public_key: key, user_id: userId }) => [key, named(userId)]));
}

async function quorumsWith({ app, em }: OperationContext, keys: readonly string[]) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members as member')
    .innerJoin('key_quorums as quorum', 'quorum.id', 'member.key_quorum_id')
    .select(['member.member as key', 'quorum.id as id', 'quorum.display_name as displayName'])
    .where('quorum.app_id', '=', app.id)
    .where('member.kind', '=', 'public_key')
    .where('member.member', 'in', [...new Set(keys)])
    .orderBy('quorum.id')
    .limit(MAX_QUORUMS)
    .execute();
  return Map.groupBy(rows, ({ key }) => key);
}

/**
 * Returns the evidence with which the key store verifies that the request was authorized. Returns undefined if there is
 * none: while an automation runs, and for an intent whose signatures an earlier version collected.
 *
 * @param covered the payloads of the `Authorization` that `requireAuthorization` returned.
 */
export function evidenceOf(
  { proof }: Pick<OperationContext, 'proof'>,
  { covered }: Authorization,
): Evidence | undefined {
  if (proof.agreement !== undefined) return proof.agreement.evidence;
  // Nobody has signed for a wallet without an owner, nor for an automation, which has no request. The key store still
  // reads the request, for example to see who becomes the owner.
  const payloads = covered.length > 0 ? covered : proof.canonicalPayloads().slice(0, 1);
  if (payloads.length === 0) return undefined;
  const { signatures } = proof;
  return {
    requests: payloads.map((payload) => ({ payload: Buffer.from(payload).toString('utf8'), signatures })),
  };
}

export interface AdditionalSigner {
  /** The key quorum that may sign. */
  readonly signerId: string;
  /** Policies that replace the wallet's policies when this signer signs. If absent, the wallet's policies apply. */
  readonly overridePolicyIds?: readonly string[];
}

/** The party that authorized a request: the owner, an additional signer, or nobody because there is no owner. */
export type SignedBy =
  | { readonly kind: 'owner' }
  | { readonly kind: 'signer'; readonly signerId: string; readonly overridePolicyIds?: readonly string[] }
  | { readonly kind: 'none' };

/** How a request about a resource was authorized. */
export interface Authorization {
  /** It determines the applicable policies. */
  readonly party: SignedBy;
  /**
   * The canonical payloads that the verified signatures cover. There are several if members signed under several host
   * names of the server. Empty if the signatures of the request were not verified: without an owner, while an intent is
   * executed, and while an automation runs.
   */
  readonly covered: readonly Uint8Array[];
}

/** The parties that may authorize requests about one resource. */
export interface Eligible {
  /** The key quorum that owns the resource; null without an owner. */
  readonly ownerId: string | null;
  /** Signers that may authorize instead of the owner, in order of precedence. */
  readonly signers?: readonly AdditionalSigner[];
}

/**
 * Checks the signatures of a request about a resource: first against the owner, then against each additional signer.
 *
 * - Without an owner, every caller with the app's credentials may act, and signatures are ignored.
 * - While an intent is executed, the signatures of the intent count instead.
 * - While an automation runs, the consent that the owner gave in advance counts instead.
 *
 * @throws ApiError `missing_or_empty_authorization_header`, `incorrect_quantity_of_authorization_signatures`,
 * `user_session_keys_expired`, `no_valid_user_session_keys`, `zero_correct_authorization_signatures`,
 * `insufficient_correct_authorization_signatures`; `request_expired` if the app's settings require an earlier expiry.
 */
export async function requireAuthorization(
  context: OperationContext,
  eligible: Eligible,
): Promise<Authorization> {
  const { ownerId, signers } = eligible;
  if (ownerId === null) return anyone;
  return await inSpan({ name: 'authorization', kind: 'internal' }, () =>
    requireParties(context, ownerId, signers),
  );
}

const anyone: Authorization = { party: { kind: 'none' }, covered: [] };

async function requireParties(
  context: OperationContext,
  ownerId: string,
  signers: Eligible['signers'] = [],
): Promise<Authorization> {
  const { signatures, agreement, consentOf } = context.proof;
  if (consentOf !== undefined) {
    if (consentOf !== ownerId) throw new ApiError('insufficient_correct_authorization_signatures');
    return { party: { kind: 'owner' }, covered: [] };
  }
  if (agreement !== undefined) {
    const parties = await loadParties(context, { ownerId, signers }, agreement.intentId);
    const party = findAgreed(parties, agreement);
    if (party === undefined) throw new ApiError('insufficient_correct_authorization_signatures');
    return { party: party.signedBy, covered: [] };
  }
  if (signatures.length === 0 && !context.diagnostics)
    throw new ApiError('missing_or_empty_authorization_header');
  return requireParty(context, await loadParties(context, { ownerId, signers }));
}

/**
 * Requires a signature by a live key of a user, whatever the user owns.
 *
 * @throws ApiError what `requireAuthorization` throws.
 */
export async function requireUserKey(context: OperationContext, userId: string): Promise<void> {
  const quorum = await loadUserAsQuorum(context, userId);
  await requireParty(context, [{ role: 'owner', quorum, signedBy: { kind: 'owner' } }]);
}

/** Returns whether a user has a key that can sign now. */
export async function hasLiveKey(context: OperationContext, userId: string): Promise<boolean> {
  return quorumKeys(await loadUserAsQuorum(context, userId)).length > 0;
}

async function requireParty(
  context: OperationContext,
  parties: readonly EligibleParty[],
): Promise<Authorization> {
  if (context.proof.signatures.length > 0) await requireShortExpiry(context);
  const verified = await verify(context, parties);
  const authorizing = parties.find(({ quorum }) => countQuorum(quorum, verified.keys).satisfied);
  if (authorizing === undefined) throw await refusal(context, parties, verified);
  const payloads = context.proof.canonicalPayloads();
  const covered = [...verified.payloadIndices].map((index) => payloads[index]!);
  context.noteSignatures(
    quorumKeys(authorizing.quorum).filter((key) => verified.keys.has(key)),
    covered,
  );
  return { party: authorizing.signedBy, covered };
}

/** A party with the role in which it authorizes. */
export interface EligibleParty extends Party {
  readonly signedBy: SignedBy;
}

/**
 * Loads the parties any of which can authorize a request: the owner, then the additional signers. With `intentId`, user
 * keys bound to that intent also count.
 */
export async function loadParties(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  { ownerId, signers = [] }: Eligible & { readonly ownerId: string },
  intentId?: string,
): Promise<EligibleParty[]> {
  const ids = [...new Set([ownerId, ...signers.map((signer) => signer.signerId)])];
  const quorums = await loadQuorums(context, ids, intentId);
  const quorumOf = (id: string): LoadedQuorum => {
    const quorum = quorums.get(id);
    // INVARIANT: a key quorum that is an owner or signer is never deleted.
    assert(quorum !== undefined, `key quorum ${id} is named by a resource and does not exist`);
    return quorum;
  };
  return [
    { role: 'owner', quorum: quorumOf(ownerId), signedBy: { kind: 'owner' } },
    ...signers.map(
      (signer): EligibleParty => ({
        role: 'signer',
        quorum: quorumOf(signer.signerId),
        signedBy: { kind: 'signer', ...signer },
      }),
    ),
  ];
}

/**
 * Finds the first party whose threshold the signatures of an intent reach, beginning with the owner. Undefined if they
 * reach none.
 */
export function findAgreed(
  parties: readonly EligibleParty[],
  agreement: Agreement,
): EligibleParty | undefined {
  return parties.find(({ quorum }) => countAgreement(quorum, agreement).satisfied);
}

const nothingVerified: VerifiedSignatures = {
  keys: new Set(),
  keyOfSignature: [],
  payloadIndices: new Set(),
};

// Caches the public keys that last signed for an owner, in signature order. The same keys usually sign again, and each
// failed verification costs as much as a database look-up.
const recentSigners = new LRUCache<string, ReadonlySet<string>>({ max: 10_000 });

async function verify(context: OperationContext, parties: readonly Party[]): Promise<VerifiedSignatures> {
  // With diagnostics, every signature is verified and reported, even if there are too few.
  if (!context.diagnostics && hasTooFew(context.proof.signatures, parties)) return nothingVerified;
  const owner = parties[0]?.quorum;
  if (owner === undefined) return nothingVerified;
  const keys = [
    ...parties.flatMap(({ quorum }) => quorumKeys(quorum)),
    ...parties.flatMap(({ quorum }) => expiredKeys(quorum)),
  ];
  const eligible = new Set(keys);
  const recent = [...(recentSigners.get(owner.id) ?? [])].filter((key) => eligible.has(key));
  const verified = await inSlices(
    verifySignatures({
      signatures: context.proof.signatures,
      payloads: context.proof.canonicalPayloads(),
      keys: [...recent, ...keys],
      // Only an authorization by the owner ends the search early. After an authorization by a signer, one by the owner
      // may still follow.
      isEnough: (signed) => countQuorum(owner, signed).satisfied,
    }),
  );
  if (verified.keys.size > 0) recentSigners.set(owner.id, verified.keys);
  return verified;
}

function hasTooFew(signatures: readonly string[], parties: readonly Party[]): boolean {
  return parties.every(({ quorum }) => signatures.length < fewestSignatures(quorum));
}

async function refusal(
  context: OperationContext,
  parties: readonly Party[],
  verified: VerifiedSignatures,
): Promise<ApiError> {
  const code = refusalCode(context, parties, verified);
  if (!context.diagnostics) return new ApiError(code);
  const { signatures } = context.proof;
  const payloads = context.proof.canonicalPayloads();
  return new ApiError(code, undefined, {
    data: await explainRefused(context, { signatures, payloads, verified, parties }),
  });
}

// CHOICE: the order of error codes. Codes about missing signatures come first, then codes about user keys, then codes
// about invalid signatures.
function refusalCode(
  { proof: { signatures } }: OperationContext,
  parties: readonly Party[],
  { keys }: VerifiedSignatures,
): ErrorCode {
  if (signatures.length === 0) return 'missing_or_empty_authorization_header';
  if (hasTooFew(signatures, parties)) return 'incorrect_quantity_of_authorization_signatures';
  const expired = new Set(parties.flatMap(({ quorum }) => expiredKeys(quorum)));
  if ([...keys].some((key) => expired.has(key))) return 'user_session_keys_expired';
  if (keys.size > 0) return 'insufficient_correct_authorization_signatures';
  const [owner] = parties;
  return owner !== undefined && consistsOfUsersWithoutKeys(owner.quorum)
    ? 'no_valid_user_session_keys'
    : 'zero_correct_authorization_signatures';
}

function consistsOfUsersWithoutKeys(quorum: LoadedQuorum): boolean {
  return (
    quorum.users.length > 0 &&
    quorum.publicKeys.length === 0 &&
    quorum.quorums.length === 0 &&
    quorum.users.every((user) => user.liveKeys.length === 0)
  );
}
