import { base58ToBytes, InvalidEncodingError } from '../crypto/encoding.ts';
import { parseTronAddress, tronAddressText } from '../policy/values.ts';
import { checksumAddress } from '../signing/ethereum/signer.ts';

const EVM_ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HEX_ADDRESS = /^0x[0-9a-fA-F]+$/;
const SOLANA_ADDRESS_BYTES = 32;

/**
 * Returns the form in which addresses are stored: EIP-55 case for EVM, lower case for other 0x hex, everything else
 * unchanged.
 */
export function normalizeAddress(address: string): string {
  const ethereum = normalizeEthereumAddress(address);
  if (ethereum !== undefined) return ethereum;
  return HEX_ADDRESS.test(address) ? address.toLowerCase() : address;
}

/**
 * Returns the form in which an address of this chain type is stored. Returns undefined for an invalid ethereum or
 * solana address.
 */
export function normalizeWalletAddress(chainType: string, address: string): string | undefined {
  if (chainType === 'ethereum') return normalizeEthereumAddress(address);
  if (chainType === 'solana' && !isSolanaAddress(address)) return undefined;
  return normalizeAddress(address);
}

/** Returns the EIP-55 form of `0x` and 40 hex digits in any case, or undefined for any other string. */
export function normalizeEthereumAddress(address: string): string | undefined {
  return EVM_ADDRESS.test(address) ? checksumAddress(address.slice(2)) : undefined;
}

function isSolanaAddress(address: string): boolean {
  // Check the length first, because the cost of decoding grows with the square of the length.
  if (address.length < 32 || address.length > 44) return false;
  try {
    return base58ToBytes(address).length === SOLANA_ADDRESS_BYTES;
  } catch (error) {
    if (error instanceof InvalidEncodingError) return false;
    throw error;
  }
}

/**
 * Returns an address in the notation of the chain type, with checksum case for EVM. Returns undefined for a string
 * that is not such an address.
 */
export function readChainAddress(chainType: string, text: string): string | undefined {
  if (chainType !== 'tron') return normalizeWalletAddress(chainType, text);
  const addressHex = parseTronAddress(text);
  return addressHex === undefined ? undefined : tronAddressText(addressHex);
}
