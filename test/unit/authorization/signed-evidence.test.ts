import crypto, { generateKeyPairSync, verify as nodeVerify, sign } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { describe, expect, test, vi } from 'vitest';
import type { Quorum } from '../../../src/engine/authorization/quorum.ts';
import { isSignedBy } from '../../../src/engine/authorization/signed-evidence.ts';
import { parseP256PublicKey } from '../../../src/engine/crypto/p256.ts';

/** How many signatures `work` verifies, those that it has verified before not counted. */
async function verificationsOf(work: () => Promise<void>): Promise<number> {
  const spy = vi.spyOn(crypto, 'verify');
  syncBuiltinESMExports();
  try {
    await work();
    return spy.mock.calls.length;
  } finally {
    spy.mockRestore();
    syncBuiltinESMExports();
  }
}

function newSigner() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    publicKey: parseP256PublicKey(publicKey.export({ type: 'spki', format: 'der' }).toString('base64')),
    sign: (text: string) => sign('sha256', Buffer.from(text), privateKey).toString('base64'),
    hasSigned: (text: string, signature: string) =>
      nodeVerify('sha256', Buffer.from(text), publicKey, Buffer.from(signature, 'base64')),
  };
}

const signers = [newSigner(), newSigner(), newSigner()];
const [ann, bob, cid] = signers as [(typeof signers)[0], (typeof signers)[0], (typeof signers)[0]];
const stranger = newSigner();

let quorumCount = 0;
function quorumOf(members: readonly { readonly publicKey: string }[], threshold: number): Quorum {
  quorumCount += 1;
  const publicKeys = members.map(({ publicKey }) => publicKey);
  return { id: `quorum ${quorumCount}`, threshold, publicKeys, users: [], quorums: [] };
}

const evidenceOf = (payload: string, by: readonly { sign(text: string): string }[]) => ({
  requests: [{ payload, signatures: by.map((signer) => signer.sign(payload)) }],
});

describe('a quorum of two of three', () => {
  test('a quorum of two of three is judged the same way after all signatures before', async () => {
    const quorum = quorumOf(signers, 2);
    const groups = [
      [],
      [ann],
      [cid],
      [bob, cid],
      [ann, ann],
      [stranger, cid],
      [cid, ann],
      [stranger, bob, cid],
    ];
    let payload = 0;
    for (const before of groups) {
      for (const now of groups) {
        payload += 1;
        await isSignedBy(quorum, evidenceOf(`before ${payload}`, before));
        const evidence = evidenceOf(`now ${payload}`, now);
        const [request] = evidence.requests;
        const members = signers.filter(({ hasSigned }) =>
          request!.signatures.some((signature) => hasSigned(request!.payload, signature)),
        );
        expect(await isSignedBy(quorum, evidence)).toBe(members.length >= 2);
      }
    }
  });

  test('tries the keys first that have signed before', async () => {
    const quorum = quorumOf(signers, 2);
    await isSignedBy(quorum, evidenceOf('first', [bob, cid]));
    const again = async () => expect(await isSignedBy(quorum, evidenceOf('second', [bob, cid]))).toBe(true);
    expect(await verificationsOf(again)).toBe(2);
  });

  test('needs no more signatures verified than are enough', async () => {
    const quorum = quorumOf(signers, 1);
    const direct = async () =>
      expect(await isSignedBy(quorum, evidenceOf('text', [ann, bob, cid]))).toBe(true);
    expect(await verificationsOf(direct)).toBe(1);
    const requests = [ann, bob].flatMap((signer) => evidenceOf('text of an intent', [signer]).requests);
    const intent = async () => expect(await isSignedBy(quorum, { requests })).toBe(true);
    expect(await verificationsOf(intent)).toBe(1);
  });

  test('a quorum of two of three counts signatures of several requests together', async () => {
    const quorum = quorumOf(signers, 2);
    const one = evidenceOf('https://one.test', [ann]).requests;
    const other = evidenceOf('https://other.test', [cid]).requests;
    expect(await isSignedBy(quorum, { requests: one })).toBe(false);
    expect(await isSignedBy(quorum, { requests: [...one, ...other] })).toBe(true);
    expect(await isSignedBy(quorum, { requests: [...one, ...one] })).toBe(false);
  });

  test('a quorum of two of three does not count keys that are members no more', async () => {
    const before = quorumOf(signers, 2);
    expect(await isSignedBy(before, evidenceOf('text', [bob, cid]))).toBe(true);
    const after = { ...before, publicKeys: [ann.publicKey, bob.publicKey] };
    expect(await isSignedBy(after, evidenceOf('text', [bob, cid]))).toBe(false);
  });
});
