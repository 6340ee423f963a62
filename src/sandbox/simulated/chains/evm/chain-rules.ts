import { type Common, createCustomCommon, Hardfork, Mainnet } from '@ethereumjs/common';
import { paramsEVM } from '@ethereumjs/evm';
import type { KZG } from '@ethereumjs/util';
import { bls12_381 } from '@noble/curves/bls12-381.js';

const { G1, G2, fields, pairingBatch } = bls12_381;

/** The second point of G2 in the trusted setup of Ethereum's KZG ceremony: tau * G2. */
const TAU_G2 =
  'b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2';

/** Returns the rules of Ethereum's newest hardfork. */
export function chainRules(chainId: bigint): Common {
  return createCustomCommon({ chainId: Number(chainId) }, Mainnet, {
    hardfork: Hardfork.Osaka,
    params: paramsEVM,
    customCrypto: { kzg: { ...withoutBlobs, verifyProof } },
  });
}

const notSupported = (): never => {
  throw new Error('simulated chains have no blobs');
};
/** The KZG functions that only transactions with blobs need. They throw. */
const withoutBlobs: Omit<KZG, 'verifyProof'> = {
  blobToKzgCommitment: notSupported,
  computeBlobProof: notSupported,
  verifyBlobProofBatch: notSupported,
  computeCells: notSupported,
  computeCellsAndProofs: notSupported,
  recoverCellsAndProofs: notSupported,
  verifyCellKzgProofBatch: notSupported,
};

/**
 * Returns whether the polynomial behind a commitment has the value `y` at `z`. All arguments are 0x hex.
 *
 * e(C - y G1, G2) = e(proof, tau G2 - z G2) (EIP-4844, verify_kzg_proof)
 *
 * @throws Error with `C_KZG_BADARGS`, like c-kzg, for an argument that is not a point or a field element.
 */
function verifyProof(commitment: string, z: string, y: string, proof: string): boolean {
  const inputs = readInputs();
  const left = inputs.commitment.subtract(G1.Point.BASE.multiplyUnsafe(inputs.y));
  const right = G2.Point.fromHex(TAU_G2).subtract(G2.Point.BASE.multiplyUnsafe(inputs.z));
  const pairs = [
    { g1: left.negate(), g2: G2.Point.BASE },
    { g1: inputs.proof, g2: right },
  ];
  // The pairing with the point at infinity is 1. noble does not compute it.
  const product = pairingBatch(pairs.filter(({ g1, g2 }) => !g1.is0() && !g2.is0()));
  return fields.Fp12.eql(product, fields.Fp12.ONE);

  function readInputs() {
    try {
      return { commitment: pointOf(commitment), proof: pointOf(proof), z: scalarOf(z), y: scalarOf(y) };
    } catch (error) {
      throw new Error('C_KZG_BADARGS', { cause: error });
    }
  }
}

function pointOf(text: string) {
  const point = G1.Point.fromHex(text.slice(2));
  point.assertValidity();
  return point;
}

function scalarOf(text: string): bigint {
  const value = BigInt(text);
  if (value >= fields.Fr.ORDER) throw new Error('expected a field element');
  return value;
}
