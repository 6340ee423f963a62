import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, hexToBytes, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';

// CHOICE: on every simulated chain, the contracts have the addresses that their authors published for Ethereum.
/** Uniswap's `UniswapV2Router02`. */
export const SWAP_ROUTER_ADDRESS = '0x7a250d5630b4cf539739df2c5dacb4c659f2488d';
/** Uniswap's `UniswapV2Factory`. */
export const PAIR_FACTORY_ADDRESS = '0x5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f';
/** Merkl's `Distributor`. */
export const DISTRIBUTOR_ADDRESS = '0x3ef3d8ba38ebe18db133cec108f4d14ce00dd9ae';

/** keccak256 of the creation code of `UniswapV2Pair`. Source: v2-periphery, UniswapV2Library. */
const PAIR_INIT_CODE_HASH = '96e8ac4277198ff8b6f785478aa9a39f403cb768dd02cbee326c3e7da348845f';

// The addresses of the wrapped native assets, as their issuers publish them.
const wrappedNatives: Readonly<Record<string, string>> = {
  'eip155:1': '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2',
  'eip155:56': '0xbb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c',
  'eip155:137': '0x0d500b1d8e8ef31e21c99d1db9a6444d3adf1270',
  'eip155:42161': '0x82af49447d8a07e3bd95bd0d56f35241523fbab1',
  'eip155:43114': '0xb31f66aa3c1e785363f0875a1b74e27b85fd66c7',
  'eip155:11155111': '0xfff9976782d46cc05630d1f6ebab18b2324d6b14',
};

/** CHOICE: other chains use the address that all OP Stack chains have. */
const OP_STACK_WRAPPED_NATIVE = '0x4200000000000000000000000000000000000006';

/** Returns the token that wraps the native asset of a chain. */
export function wrappedNativeOn(caip2: string): string {
  return wrappedNatives[caip2] ?? OP_STACK_WRAPPED_NATIVE;
}

/** Returns two tokens in the order that their pair uses. */
export function sortTokens(one: string, other: string): [string, string] {
  return one < other ? [one, other] : [other, one];
}

// Computes the CREATE2 address of a pair: keccak256(0xff || factory || keccak256(token0 || token1) || init code
// hash)[12..]
export function pairAddress(one: string, other: string): string {
  const [token0, token1] = sortTokens(one, other);
  const salt = keccak_256(hexToBytes(token0.slice(2) + token1.slice(2)));
  const parts = `ff${PAIR_FACTORY_ADDRESS.slice(2)}${bytesTo0xHex(salt).slice(2)}${PAIR_INIT_CODE_HASH}`;
  return addressFrom(keccak_256(hexToBytes(parts)));
}

/**
 * Returns an address for an account that exists only in the simulation.
 *
 * CHOICE: the address is the hash of the account's description.
 */
export function derivedAddress(what: string): string {
  return addressFrom(keccak_256(utf8ToBytes(what)));
}

function addressFrom(hash: Uint8Array): string {
  return bytesTo0xHex(hash.subarray(12));
}
