import { bech32, bech32m } from '@scure/base';
import { bytesToHex } from '../crypto/encoding.ts';
import { ecBackend, taggedHash } from '../crypto/secp256k1.ts';
import {
  type ChainSigner,
  compressedKey,
  hash160,
  requireDigest,
  signDigestCompact,
} from './chain-signer.ts';

/**
 * Signs for Bitcoin P2WPKH addresses: bech32("bc", 0, hash160(compressed key)). The payload is a BIP-143 digest.
 * Source: BIP-84, BIP-173.
 */
export const bitcoinSegwitSigner: ChainSigner = {
  walletKeys(secret) {
    const key = compressedKey(secret);
    const words = [0, ...bech32.toWords(hash160(key))];
    return { address: bech32.encode('bc', words), publicKey: bytesToHex(key) };
  },
  signPayload: signDigestCompact,
};

/** Signs for Bitcoin taproot addresses, by key path. Source: BIP-86, BIP-340, BIP-341, BIP-350. */
export const bitcoinTaprootSigner: ChainSigner = taprootSigner('bc');

/**
 * Signs for Pearl, which uses Bitcoin's taproot with the address prefix `prl`. Source: pearl node chaincfg/params.go.
 */
export const pearlSigner: ChainSigner = taprootSigner('prl');

function taprootSigner(prefix: string): ChainSigner {
  return {
    walletKeys(secret) {
      const tweaked = tweakedSecret(secret);
      try {
        const outputKey = ecBackend.publicKey(tweaked, true).subarray(1);
        return {
          address: bech32m.encode(prefix, [1, ...bech32m.toWords(outputKey)]),
          publicKey: bytesToHex(compressedKey(secret)),
        };
      } finally {
        tweaked.fill(0);
      }
    },
    // The caller passes the sighash. The key is tweaked here, for an output without a script tree.
    signPayload(secret, payload) {
      const digest = requireDigest(payload);
      const tweaked = tweakedSecret(secret);
      try {
        return ecBackend.signSchnorr(digest, tweaked);
      } finally {
        tweaked.fill(0);
      }
    },
  };
}

// d' = (d if P.y is even, else n - d) + H_TapTweak(P.x) mod n; then Q = d'G (BIP-341, no script tree)
function tweakedSecret(secret: Uint8Array): Uint8Array {
  const key = compressedKey(secret);
  const even = key[0] === 0x02 ? secret.slice() : ecBackend.negateSecret(secret);
  try {
    return ecBackend.addToSecret(even, taggedHash('TapTweak', key.subarray(1)));
  } finally {
    even.fill(0);
  }
}
