import type { Evidence } from '../../../authorization/signed-evidence.ts';
import type { OperationContext, RequestProof } from '../../../operation-context.ts';

/**
 * What is noted of a request, on its proof.
 *
 * HOT: not in a WeakMap: V8 keeps the values of one that is old until a full garbage collection.
 */
const covered = Symbol('the payloads that the signatures of the request were found to cover');
const signer = Symbol('the signer who authorized the request in place of the owner');

interface Noted {
  [covered]?: readonly Uint8Array[] | undefined;
  [signer]?: string | undefined;
}

/** For the copy of a proof that stands for another request. */
export const nothingNoted: Noted = { [covered]: undefined, [signer]: undefined };

function notedOf(proof: RequestProof): Noted {
  return proof as Noted;
}

/**
 * Notes which of its canonical payloads the signatures of a request cover: several where members have signed it under
 * different names of the server.
 */
export function noteCovered(proof: RequestProof, payloads: readonly Uint8Array[]): void {
  if (payloads.length > 0) notedOf(proof)[covered] = payloads;
}

/** What shows a vault that the request was authorized. Undefined while an automation runs. */
export function evidenceOf({ proof }: Pick<OperationContext, 'proof'>): Evidence | undefined {
  if (proof.agreed !== undefined) return proof.agreed.evidence;
  const payloads = notedOf(proof)[covered] ?? proof.canonicalPayloads().slice(0, 1);
  if (payloads.length === 0) return undefined;
  const { signatures } = proof;
  return {
    requests: payloads.map((payload) => ({ payload: Buffer.from(payload).toString('utf8'), signatures })),
  };
}

/** Notes which additional signer of a wallet has authorized the request, if not the owner. */
export function noteSigner(proof: RequestProof, signerId: string | undefined): void {
  notedOf(proof)[signer] = signerId;
}

/** The additional signer of a wallet who has authorized the request; undefined for the owner. */
export function signerOf(proof: RequestProof): string | undefined {
  return notedOf(proof)[signer];
}
