import type { Evidence } from '../../../authorization/signed-evidence.ts';
import type { OperationContext, RequestProof } from '../../../operation-context.ts';

/** The payloads of each request that its signatures were found to cover. */
const coveredBy = new WeakMap<RequestProof, readonly Uint8Array[]>();

/**
 * Notes which of its canonical payloads the signatures of a request cover: several where members have signed it under
 * different names of the server.
 */
export function noteCovered(proof: RequestProof, payloads: readonly Uint8Array[]): void {
  if (payloads.length > 0) coveredBy.set(proof, payloads);
}

/** What shows a vault that the request was authorized. Undefined while an automation runs. */
export function evidenceOf({ proof }: Pick<OperationContext, 'proof'>): Evidence | undefined {
  if (proof.agreed !== undefined) return proof.agreed.evidence;
  const payloads = coveredBy.get(proof) ?? proof.canonicalPayloads().slice(0, 1);
  if (payloads.length === 0) return undefined;
  const { signatures } = proof;
  return {
    requests: payloads.map((payload) => ({ payload: Buffer.from(payload).toString('utf8'), signatures })),
  };
}

/** The signer who authorized a request in place of the owner. */
const signers = new WeakMap<RequestProof, string>();

/** Notes which additional signer of a wallet has authorized the request, if not the owner. */
export function noteSigner(proof: RequestProof, signerId: string | undefined): void {
  if (signerId === undefined) signers.delete(proof);
  else signers.set(proof, signerId);
}

/** The additional signer of a wallet who has authorized the request; undefined for the owner. */
export function signerOf(proof: RequestProof): string | undefined {
  return signers.get(proof);
}
