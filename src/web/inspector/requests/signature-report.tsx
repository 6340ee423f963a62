import { Named } from '../parts/copy.tsx';
import { Label, Seats } from '../parts/label.tsx';
import { Prose } from '../parts/prose.tsx';
import { markedPayload, type SignatureCheck } from './signature-check.ts';

function outcomeOf({ verified, counts, reason }: SignatureCheck['signatures'][number]): string {
  if (verified && counts !== false) return 'counts';
  return reason ?? 'does not count';
}

/** The reason why signatures were not accepted: the expected payload, and the missing keys. */
export function SignatureReport({ check }: { readonly check: SignatureCheck }) {
  const differing = new Set(check.signatures.flatMap(({ differs_in: part }) => part ?? []));
  const [payload] = check.expected_payloads;
  return (
    <section aria-label="Signatures">
      <h3>Signatures</h3>
      <ul class="tree">
        {check.signatures.map((signature) => (
          <li key={signature.index}>
            <Prose text={`Signature ${signature.index + 1}: ${outcomeOf(signature)}`} />
            {signature.public_key !== undefined && <Key value={signature.public_key} />}
          </li>
        ))}
      </ul>
      {check.parties.map((party) => (
        <Quorum key={`${party.role} ${party.key_quorum_id}`} party={party} />
      ))}
      {payload !== undefined && (
        <>
          <h4>Payload to be signed</h4>
          <pre tabIndex={0} role="region" aria-label="Payload to be signed" class="wrapped">
            {markedPayload(payload, differing).map(({ text, isMarked }, index) =>
              isMarked ? <mark key={index}>{text}</mark> : text,
            )}
          </pre>
        </>
      )}
    </section>
  );
}

function Quorum({ party }: { readonly party: SignatureCheck['parties'][number] }) {
  const { role, counted, authorization_threshold: threshold, missing } = party;
  return (
    <div class="quorum">
      <h4>
        {role} <Named id={party.key_quorum_id} what="the key quorum's id" />: {counted} of {threshold}
        {missing > 0 && `, ${missing} missing`}
      </h4>
      <Seats size={sizeOf(party)} threshold={threshold} taken={counted} />
      <ul class="tree">
        {party.public_keys.map(({ public_key: key, signed }) => (
          <li key={key}>
            <Signed isSigned={signed} /> <Key value={key} />
          </li>
        ))}
        {party.users.map(({ user_id: id, signed }) => (
          <li key={id}>
            <Signed isSigned={signed} /> user {id}
          </li>
        ))}
        {party.key_quorums.map(({ key_quorum_id: id, satisfied }) => (
          <li key={id}>
            <Signed isSigned={satisfied} /> key quorum {id}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Signed({ isSigned }: { readonly isSigned: boolean }) {
  return <Label tone={isSigned ? 'good' : 'none'}>{isSigned ? 'signed' : 'missing'}</Label>;
}

function sizeOf(party: SignatureCheck['parties'][number]): number {
  return party.public_keys.length + party.users.length + party.key_quorums.length;
}

function Key({ value }: { readonly value: string }) {
  return <Named id={value} what="the key" />;
}
