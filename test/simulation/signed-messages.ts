import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';

/** Whether an Ethereum address has signed a message (EIP-191). */
export function hasSigned(address: string, message: string, signature: string): boolean {
  const text = new TextEncoder().encode(message);
  const digest = keccak_256(
    Buffer.concat([Buffer.from(`\x19Ethereum Signed Message:\n${text.length}`), text]),
  );
  const bytes = Buffer.from(signature.slice(2), 'hex');
  const recovery = bytes[64]! - 27;
  const recovered = secp256k1.recoverPublicKey(Uint8Array.of(recovery, ...bytes.subarray(0, 64)), digest, {
    prehash: false,
  });
  const point = secp256k1.Point.fromBytes(recovered).toBytes(false);
  const found = Buffer.from(keccak_256(point.subarray(1)))
    .subarray(-20)
    .toString('hex');
  return address.toLowerCase() === `0x${found}`;
}
