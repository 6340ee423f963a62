import type { RefusedRequest, Why } from '../../ports/requests.ts';

/** The `data.signature_check` of an error, as `diagnoseSignatures` writes it. */
interface SignatureCheck {
  readonly expected_payloads: readonly string[];
  readonly signatures: readonly {
    readonly index: number;
    readonly verified: boolean;
    readonly reason?: string;
    readonly differs_in?: string;
    readonly counts?: boolean;
    readonly public_key?: string;
    readonly key_quorum_ids?: readonly string[];
    readonly recovered_keys?: readonly string[];
  }[];
  readonly parties: readonly {
    readonly role: string;
    readonly key_quorum_id: string;
    readonly authorization_threshold: number;
    readonly counted: number;
    readonly missing: number;
    readonly public_keys: readonly { readonly public_key: string; readonly signed: boolean }[];
  }[];
}

/**
 * Explains refused authorization signatures: the fault of the first wrong signature, or what the owner's signatures
 * still lack.
 */
export function whySignatures(
  { data }: RefusedRequest,
  { keyNames }: { readonly keyNames: ReadonlyMap<string, string> },
): Why | undefined {
  const check = data.signature_check as SignatureCheck | undefined;
  if (check === undefined) return undefined;
  const wrong = check.signatures.find(({ verified, counts }) => !verified || counts === false);
  if (wrong !== undefined) {
    const { index, reason = 'it was not checked', differs_in: part } = wrong;
    const known = wrong.recovered_keys?.find((candidate) => keyNames.has(candidate));
    const key = wrong.public_key ?? known;
    const name = keyNames.get(key ?? '');
    const whose = name === undefined || part !== undefined ? '' : `this is ${name}'s key: `;
    const text =
      known === undefined ? reason : 'the signature is right, but its key is no member of the owner';
    return {
      kind: 'signature',
      hint: `signature ${index + 1}: ${whose}${text}`,
      evidence: {
        index,
        differs_in: part ?? null,
        public_key: key ?? null,
        expected_payload: check.expected_payloads[0],
      },
    };
  }
  return whyQuorum(check);
}

function whyQuorum({ signatures, parties }: SignatureCheck): Why | undefined {
  const [owner] = parties;
  if (owner === undefined) return undefined;
  const { key_quorum_id: id, authorization_threshold: threshold, counted, missing } = owner;
  const unsigned = owner.public_keys.filter(({ signed }) => !signed).map(({ public_key: key }) => key);
  const begin =
    signatures.length === 0 ? 'the request is not signed' : `${counted} of ${threshold} signatures count`;
  return {
    kind: signatures.length === 0 ? 'signature' : 'quorum',
    hint: `${begin}: ${missing} more of the owner, key quorum \`${id}\`, ${missing === 1 ? 'is' : 'are'} needed; \`data.signature_check.expected_payloads\` is what to sign`,
    evidence: {
      key_quorum_id: id,
      authorization_threshold: threshold,
      counted,
      missing,
      keys_not_signed: unsigned,
    },
  };
}
