import { base58ToBytes, InvalidEncodingError } from '../../../engine/crypto/encoding.ts';
import { checksumAddress } from '../../../engine/signing/ethereum/signer.ts';

const SOLANA_KEY_BYTES = 32;

/**
 * A wallet address in canonical form, or undefined when invalid: EIP-55 case for `ethereum`, accepted in any case;
 * base58 of 32 bytes for `solana`.
 */
export function normalizeWalletAddress(
  chainType: 'ethereum' | 'solana',
  address: string,
): string | undefined {
  if (chainType === 'ethereum') return normalizeEthereumAddress(address);
  return isSolanaAddress(address) ? address : undefined;
}

/** The EIP-55 form of `0x` and 40 hex digits in any case; undefined for anything else. */
export function normalizeEthereumAddress(address: string): string | undefined {
  return /^0x[0-9a-fA-F]{40}$/.test(address) ? checksumAddress(address.slice(2)) : undefined;
}

function isSolanaAddress(address: string): boolean {
  if (address.length < 32 || address.length > 44) return false;
  try {
    return base58ToBytes(address).length === SOLANA_KEY_BYTES;
  } catch (error) {
    if (error instanceof InvalidEncodingError) return false;
    throw error;
  }
}
