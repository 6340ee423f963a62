import type { RefusedRequest, Repair, Repetition, Why } from '../../ports/refusals.ts';
import {
  because,
  capital,
  inHeader,
  listOf,
  namedId,
  nameOrId,
  problem,
  quorumText,
  repeat,
  resourceIn,
  shortKey,
} from './problem.ts';
import type { KnownOperation } from './unknown-path.ts';

interface Facts {
  readonly prefix: string;
  readonly operations: readonly KnownOperation[];
  readonly keyNames: ReadonlyMap<string, string>;
}

/** The `data.signature_check` of an error, as `diagnoseSignatures` writes it. */
interface SignatureCheck {
  readonly expected_payloads: readonly string[];
  readonly signatures: readonly CheckedSignature[];
  readonly parties: readonly Party[];
}

interface CheckedSignature {
  readonly index: number;
  readonly verified: boolean;
  readonly reason?: string;
  readonly encoding?: string;
  readonly differs_in?: string;
  readonly counts?: boolean;
  readonly public_key?: string;
  readonly key_quorum_ids?: readonly string[];
  readonly recovered_keys?: readonly string[];
}

interface Party {
  readonly role: string;
  readonly key_quorum_id: string;
  readonly authorization_threshold: number;
  readonly counted: number;
  readonly missing: number;
  readonly public_keys: readonly { readonly public_key: string; readonly signed: boolean }[];
  readonly users?: readonly { readonly user_id: string; readonly live_keys?: number }[];
  readonly key_quorums?: readonly { readonly key_quorum_id: string }[];
}

const PAYLOAD = '`data.signature_check.expected_payloads`';

/**
 * Explains rejected authorization signatures: what is wrong with each signature, or which signatures are still
 * missing.
 */
export function whySignatures(refused: RefusedRequest, facts: Facts): Why | undefined {
  const check = refused.data.signature_check as SignatureCheck | undefined;
  if (check === undefined) return undefined;
  const wrong = check.signatures.filter(({ verified, counts }) => !verified || counts === false);
  const [first] = wrong;
  if (first === undefined) return whyQuorum(refused, check, facts);
  const found = wrong.map((each) => faultOf(each, { refused, check, facts }));
  return because('signature', found, {
    evidence: {
      index: first.index,
      differs_in: first.differs_in ?? null,
      public_key: keyOf(first, facts) ?? null,
      expected_payload: check.expected_payloads[0],
    },
    repairs: repairsFor(check, facts),
  });
}

function keyOf({ public_key: key, recovered_keys: recovered }: CheckedSignature, { keyNames }: Facts) {
  return key ?? recovered?.find((candidate) => keyNames.has(candidate));
}

interface Case {
  readonly refused: RefusedRequest;
  readonly check: SignatureCheck;
  readonly facts: Facts;
}

function faultOf(signature: CheckedSignature, { refused, check, facts }: Case) {
  const { index, reason = 'it was not checked', differs_in: part, counts } = signature;
  const header = `${facts.prefix}-authorization-signature`;
  const resource = resourceIn(refused, facts.operations) ?? 'the resource';
  const owner = ownerOf(check, refused, facts);
  const name = `signature ${index + 1}`;
  const at = inHeader(header);
  const key = keyOf(signature, facts);
  const named = key === undefined ? undefined : nameOf(key, facts);
  const sign = `Sign with ${owner.few}.`;
  if (counts === false) {
    const next = 'Get a new user key with POST /v1/wallets/authenticate, and sign again.';
    return problem({ subject: name, expected: 'a key that still counts', came: reason, next, at });
  }
  if (part !== undefined) {
    return problem({
      subject: `${name}, by ${named}`,
      expected: `a signature over ${PAYLOAD}[0]`,
      came: `one over another text: ${reason}`,
      next: `Sign exactly the bytes of ${PAYLOAD}[0], which the inspector shows too.`,
      at,
    });
  }
  if (key !== undefined) {
    const member = memberOf(signature, refused);
    return problem({
      subject: name,
      expected: `a signature by an owner of ${resource}: ${owner.whole}`,
      came: `one by ${named}${member === undefined ? '' : `, ${member}`}`,
      text: `Signed with ${named}, which is not an owner of ${resource}.${member === undefined ? '' : ` It is ${member}.`} ${capital(owner.sentence)}.`,
      next: sign,
      at,
    });
  }
  if (signature.encoding !== undefined && !['der', 'raw'].includes(signature.encoding)) {
    return problem({
      subject: name,
      expected: 'base64 of an ECDSA signature in DER',
      came: `one that is ${signature.encoding}`,
      next: 'Send the signature as base64 of its DER; several are separated by commas.',
      at,
    });
  }
  return problem({
    subject: name,
    expected: `a signature by ${owner.whole} over ${PAYLOAD}[0]`,
    came: 'one that does not verify: another key signed, or another text was signed',
    text: `Signature ${index + 1} verifies under no key of the owner of ${resource}: another key signed, or another text was signed. ${capital(owner.sentence)}.`,
    next: `Compare the text that you sign with ${PAYLOAD}[0], and your key with the owner's.`,
    at,
  });
}

const USER_KEY = /it is a key of the user `([^`]+)`$/;

/** Says to whom a key belongs that is not one of the owner's. Undefined if that is not known. */
function memberOf(
  { key_quorum_ids: quorums = [], reason = '' }: CheckedSignature,
  refused: RefusedRequest,
): string | undefined {
  const [, user] = USER_KEY.exec(reason) ?? [];
  if (user !== undefined) return `a key of user ${namedId(user, refused)}`;
  return quorums.length === 0
    ? undefined
    : `a member of ${listOf(quorums.map((id) => quorumText(id, refused)))}`;
}

/** Names a key, for example "key MFkw…QUFA== (seeded as `alice`)". */
function nameOf(key: string, { keyNames }: Facts): string {
  const name = keyNames.get(key)?.toLowerCase();
  return `key ${shortKey(key)}${name === undefined ? '' : ` (seeded as \`${name}\`)`}`;
}

const MAX_MEMBERS = 4;

/** Describes the owner in three forms: for "by …", as a sentence, and for "Sign with …". */
function ownerOf({ parties }: SignatureCheck, refused: RefusedRequest, facts: Facts) {
  const [owner] = parties;
  if (owner === undefined)
    return { whole: 'the owner', sentence: 'It has an owner', few: 'a key of the owner' };
  const { public_keys: keys, users = [], key_quorums: quorums = [], authorization_threshold: least } = owner;
  const same = (text: string) => ({ text, few: text });
  const members = [
    ...keys.map(({ public_key: key }) => same(nameOf(key, facts))),
    // The short form follows the long one, so the name alone identifies the user.
    ...users.map(({ user_id: id }) => ({
      text: `user ${namedId(id, refused)}`,
      few: `a key of user ${nameOrId(id, refused)}`,
    })),
    ...quorums.map(({ key_quorum_id: id }) => same(quorumText(id, refused))),
  ];
  const more = members.length - MAX_MEMBERS;
  const shown = [...members.slice(0, MAX_MEMBERS), ...(more > 0 ? [same(`${more} more`)] : [])];
  const texts = shown.map(({ text }) => text);
  if (members.length === 1) {
    return { whole: texts[0]!, sentence: `its owner is ${texts[0]}`, few: texts[0]! };
  }
  if (least === 1) {
    const any = texts.join(' or ');
    return { whole: any, sentence: `its owner is ${any}`, few: shown.map(({ few }) => few).join(' or ') };
  }
  const group = `${least} of ${listOf(texts)} in key quorum ${namedId(owner.key_quorum_id, refused)}`;
  return { whole: group, sentence: `its owner is ${group}`, few: `${least} of the keys of its owner` };
}

function whyQuorum(refused: RefusedRequest, check: SignatureCheck, facts: Facts): Why | undefined {
  const { signatures, parties } = check;
  const [owner] = parties;
  if (owner === undefined) return undefined;
  const { key_quorum_id: id, authorization_threshold: threshold, counted, missing } = owner;
  const unsigned = owner.public_keys.filter(({ signed }) => !signed).map(({ public_key: key }) => key);
  const resource = resourceIn(refused, facts.operations) ?? 'the resource';
  const { whole, sentence, few } = ownerOf(check, refused, facts);
  const isUnsigned = signatures.length === 0;
  const lacking = unsigned.map((key) => nameOf(key, facts)).slice(0, MAX_MEMBERS);
  const at = inHeader(`${facts.prefix}-authorization-signature`);
  const found = isUnsigned
    ? problem({
        subject: resource,
        expected: `a signature by ${whole}`,
        came: 'no signature',
        text: `The request is not signed, and ${resource} has an owner. ${capital(sentence)}.`,
        next: `Sign ${PAYLOAD}[0] with ${few}.`,
        at,
      })
    : problem({
        subject: resource,
        expected: `${threshold} signatures of ${quorumText(id, refused)}`,
        came: `${counted} that count${signatures.length > counted ? `, of ${signatures.length} sent` : ''}`,
        text: `${capital(resource)} needs ${threshold} signatures of its owner, ${quorumText(id, refused)}, and ${counted} of ${signatures.length} sent ${counted === 1 ? 'counts' : 'count'}${signatures.length > counted ? ': a key counts once' : ''}.`,
        next: `Add ${missing} more${lacking.length === 0 ? '' : ` by ${listOf(lacking, 'or')}`}, separated by commas.`,
        at,
      });
  return because(isUnsigned ? 'signature' : 'quorum', [found], {
    evidence: {
      key_quorum_id: id,
      authorization_threshold: threshold,
      counted,
      missing,
      keys_not_signed: unsigned,
    },
    repairs: repairsFor(check, facts),
  });
}

/** Returns the repair "sign again with keys of the seed data", if these are enough for the owner or a signer. */
function repairsFor({ parties }: SignatureCheck, { keyNames }: Facts): Repair[] {
  for (const { role, public_keys: keys, authorization_threshold: least } of parties) {
    const signers = keys
      .toSorted((a, b) => Number(b.signed) - Number(a.signed))
      .flatMap(({ public_key: key }) => keyNames.get(key)?.toLowerCase() ?? [])
      .slice(0, least) as NonNullable<Repetition['sign_as']>;
    if (signers.length < least) continue;
    return [repeat(`Sign again as ${listOf(signers.map(capital))}, the ${role}`, { sign_as: signers })];
  }
  return [];
}
