import * as stark from '@scure/starknet';
import { bytesTo0xHex, hexToBytes, utf8ToBytes } from '../crypto/encoding.ts';
import type { ChainSigner } from './chain-signer.ts';
import { InvalidPayloadError } from './signing-errors.ts';
import { pedersen, pedersenFold } from './starknet-pedersen.ts';

// Addresses are below 2^251 - 256; signed hashes below 2^251.
const ADDRESS_BOUND = 2n ** 251n - 256n;
const HASH_BOUND = 2n ** 251n;
const CONTRACT_ADDRESS_PREFIX = BigInt(bytesTo0xHex(utf8ToBytes('STARKNET_CONTRACT_ADDRESS')));

// The account contracts with the constructor arguments for a key.
const ACCOUNT_CLASSES = {
  // Ready (Argent) v0.4.0: a Starknet signer owner, no guardian
  ready: {
    classHash: 0x036078334509b514626504edc9fb252328d1a240e4e948bef8d0c08dff45927fn,
    calldata: (key: bigint) => [0n, key, 1n],
  },
  // OpenZeppelin account v0.17
  openzeppelin: {
    classHash: 0x540d7f5ec7ecf317e68d48564934cb99259781b1ee3cedbbc37ec5337f8e688n,
    calldata: (key: bigint) => [key],
  },
} as const;

export type StarknetAccountClass = keyof typeof ACCOUNT_CLASSES;

/**
 * Starknet accounts. Signs a transaction hash (a felt below 2^251) as r || s. Source: Starknet docs, contract address
 * and signatures.
 */
export const starknetSigner: ChainSigner = {
  // CHOICE: Ready by default; the published client types do not state which account class `address` is computed with.
  walletKeys(secret, { starknetAccountClass = 'ready' }) {
    const key = BigInt(stark.getStarkKey(secret));
    return {
      address: feltHex(starknetAddress(key, starknetAccountClass)),
      publicKey: feltHex(key),
    };
  },
  signPayload(secret, payload) {
    const isFelt = payload.length >= 1 && payload.length <= 32;
    if (!isFelt || BigInt(bytesTo0xHex(payload)) >= HASH_BOUND) {
      throw new InvalidPayloadError('/hash', 'expected a felt below 2^251');
    }
    const digest = new Uint8Array(32);
    digest.set(payload, 32 - payload.length);
    return stark.sign(digest, secret).toBytes('compact');
  },
};

/** The address of the account contract when deployed for this key with salt = key and deployer 0. */
export function starknetAddress(key: bigint, accountClass: StarknetAccountClass): bigint {
  const { classHash, calldata } = ACCOUNT_CLASSES[accountClass];
  const callHash = pedersenChain(calldata(key));
  // The pedersen chain over [prefix, deployer, salt, class hash, callHash], of which the first two are always the same.
  hashOfPrefix ??= pedersenFold([CONTRACT_ADDRESS_PREFIX, 0n]);
  return pedersenFold([key, classHash, callHash, 5n], hashOfPrefix) % ADDRESS_BOUND;
}

let hashOfPrefix: bigint | undefined;

// h(h(h(0, e0), e1) ..., length)
function pedersenChain(elements: readonly bigint[]): bigint {
  return pedersen(pedersenFold(elements), BigInt(elements.length));
}

/** Derives a uniformly distributed Stark secret from 32 bytes of key material. Source: EIP-2645, key grinding. */
export function grindStarkSecret(material: Uint8Array): Uint8Array {
  return hexToBytes(stark.grindKey(material).padStart(64, '0'));
}

/** Whether the bytes are a 32-byte non-zero scalar of the Stark curve. */
export function isStarkSecret(secret: Uint8Array): boolean {
  return secret.length === 32 && stark.utils.isValidPrivateKey(secret);
}

function feltHex(felt: bigint): string {
  return `0x${felt.toString(16)}`;
}
