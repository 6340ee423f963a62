import { explainSignature, type SignatureExplanation } from './explain-signature.ts';
import { countQuorum, expiredKeys, type LoadedQuorum, quorumKeys } from './quorum.ts';
import type { VerifiedSignatures } from './request-signatures.ts';

/** An owner or signer whose signatures could authorize the request. */
export interface Party {
  readonly role: 'owner' | 'signer';
  readonly quorum: LoadedQuorum;
}

// Once the expected payloads exceed this many bytes in total, further payloads are omitted. The first payload is
// always included.
const MAX_PAYLOAD_BYTES = 65_536;
const MAX_EXPLAINED = 5;
// Known mistakes are tried on this many payloads of at most this many characters. Each payload has about a hundred
// variants, and the first payload is also tried with every order of its members.
const MAX_EXPLAINED_PAYLOADS = 3;
const MAX_EXPLAINED_CHARACTERS = 16_384;
// The cost of comparing one signature with all known mistakes in these payloads, counted in signature verifications.
const EXPLANATION_COST = 500;
// Reading and writing this many bytes of a payload takes as long as one verification.
const SHOWN_BYTES_PER_VERIFICATION = 8 * 1024;

/**
 * Explains in the error's `data` why the signatures of a request were rejected: the payloads that would have been
 * accepted, their parts, a diagnosis of each signature, and the number of signatures that each party still needs. The
 * generator yields costs like `verifySignatures`.
 *
 * INVARIANT: the result contains only data that the caller sent or that is public: no secret and no private key.
 */
export function* diagnoseSignatures({
  signatures,
  payloads,
  verified,
  parties,
  sentBody,
}: {
  readonly signatures: readonly string[];
  /** The body exactly as the client sent it. */
  readonly sentBody?: string | undefined;
  readonly payloads: readonly Uint8Array[];
  readonly verified: VerifiedSignatures;
  readonly parties: readonly Party[];
}): Generator<number, Record<string, unknown>> {
  // Yield first: the payloads may just have been written, which costs as much as including them here.
  yield (payloads[0]?.length ?? 0) / SHOWN_BYTES_PER_VERIFICATION;
  const texts = withinLimit(payloads);
  const explained: Record<string, unknown>[] = [];
  for (const [index, signature] of signatures.entries()) {
    const keyOfSignature = verified.keyOfSignature[index];
    explained.push(explainOne({ signature, index, texts, keyOfSignature, parties, sentBody }));
    if (keyOfSignature === undefined && index < MAX_EXPLAINED) yield EXPLANATION_COST;
  }
  return {
    signature_check: {
      expected_payloads: texts,
      signed_parts: signedParts(texts),
      matched_urls: urlsOf(texts.filter((_, index) => verified.payloadIndices.has(index))),
      signatures: explained,
      parties: parties.map((party) => describeParty(party, verified.keys)),
    },
  };
}

function withinLimit(payloads: readonly Uint8Array[]): string[] {
  let total = 0;
  return payloads
    .filter((bytes, index) => {
      total += bytes.length;
      return index === 0 || total <= MAX_PAYLOAD_BYTES;
    })
    .map((bytes) => new TextDecoder().decode(bytes));
}

function signedParts(texts: readonly string[]): Record<string, unknown> {
  const payloads = texts.map((text) => JSON.parse(text) as Record<string, unknown>);
  const first = payloads[0] ?? {};
  const headers = (first.headers ?? {}) as Record<string, unknown>;
  const expiry = Object.entries(headers).find(([name]) => name.endsWith('-request-expiry'))?.[1];
  return {
    method: first.method,
    urls: urlsOf(texts),
    bodies: [
      ...new Set(
        payloads.map((payload) => ('body' in payload ? JSON.stringify(payload.body) : '(left out)')),
      ),
    ].slice(0, 3),
    headers,
    request_expiry: expiry ?? '(not sent)',
  };
}

function urlsOf(texts: readonly string[]): unknown[] {
  return [...new Set(texts.map((text) => (JSON.parse(text) as Record<string, unknown>).url))];
}

function explainOne(input: {
  signature: string;
  index: number;
  texts: readonly string[];
  keyOfSignature: string | undefined;
  parties: readonly Party[];
  sentBody: string | undefined;
}): Record<string, unknown> {
  const { signature, index, texts, keyOfSignature, parties, sentBody } = input;
  if (keyOfSignature !== undefined) {
    return { index, verified: true, public_key: keyOfSignature, ...describeKey(keyOfSignature, parties) };
  }
  if (index >= MAX_EXPLAINED) return { index, verified: false };
  const keys = [...new Set(parties.flatMap(({ quorum }) => [...quorumKeys(quorum), ...expiredKeys(quorum)]))];
  const payloads = texts
    .filter((text) => text.length <= MAX_EXPLAINED_CHARACTERS)
    .slice(0, MAX_EXPLAINED_PAYLOADS);
  const text = sentBody !== undefined && sentBody.length <= MAX_EXPLAINED_CHARACTERS ? sentBody : undefined;
  const explanation = explainSignature({ signature, payloads, keys, sentBody: text });
  return { index, verified: false, ...describeFailure(explanation) };
}

function describeFailure({ encoding, nearMiss, strangers }: SignatureExplanation): Record<string, unknown> {
  if (encoding !== 'der' && encoding !== 'raw') {
    return { encoding, reason: `expected base64 of a DER signature, got one that is ${encoding}` };
  }
  if (nearMiss === undefined) {
    return {
      encoding,
      reason: 'the signature verifies under no eligible key for any expected payload',
      ...(strangers === undefined ? {} : { recovered_keys: strangers }),
    };
  }
  return {
    encoding,
    reason: `${nearMiss.mistake}; everything else matches`,
    differs_in: nearMiss.part,
    public_key: nearMiss.key,
  };
}

function describeKey(key: string, parties: readonly Party[]): Record<string, unknown> {
  const isExpired = parties.some(({ quorum }) => expiredKeys(quorum).includes(key));
  return isExpired
    ? { counts: false, reason: 'the user key has expired' }
    : {
        counts: true,
        key_quorum_ids: parties
          .filter(({ quorum }) => quorumKeys(quorum).includes(key))
          .map(({ quorum }) => quorum.id),
      };
}

function describeParty({ role, quorum }: Party, keys: ReadonlySet<string>): Record<string, unknown> {
  const { count, threshold, missing } = countQuorum(quorum, keys);
  return {
    role,
    key_quorum_id: quorum.id,
    authorization_threshold: threshold,
    counted: count,
    missing,
    public_keys: quorum.publicKeys.map((key) => ({ public_key: key, signed: keys.has(key) })),
    users: quorum.users.map(({ userId, liveKeys }) => ({
      user_id: userId,
      live_keys: liveKeys.length,
      signed: liveKeys.some((key) => keys.has(key)),
    })),
    key_quorums: quorum.quorums.map((child) => ({
      key_quorum_id: child.id,
      satisfied: countQuorum(child, keys).satisfied,
    })),
  };
}
