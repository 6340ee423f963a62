import { parseTronAddress, tronAddressText } from '../policy/values.ts';
import { normalizeWalletAddress } from './normalize-address.ts';

/** An address as the chain type writes it, EVM in checksum case; undefined for text that is not such an address. */
export function readChainAddress(chainType: string, text: string): string | undefined {
  if (chainType !== 'tron') return normalizeWalletAddress(chainType, text);
  const addressHex = parseTronAddress(text);
  return addressHex === undefined ? undefined : tronAddressText(addressHex);
}
