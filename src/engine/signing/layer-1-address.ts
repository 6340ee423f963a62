import { sha256 } from '@noble/hashes/sha2.js';
import { bech32, bech32m, createBase58check } from '@scure/base';
import type { SparkNetworkName } from './spark.ts';

const base58check = createBase58check(sha256);
// The bech32 human-readable part, and the version bytes of P2PKH and P2SH.
const networks = {
  MAINNET: { prefix: 'bc', versions: [0x00, 0x05] },
  REGTEST: { prefix: 'bcrt', versions: [0x6f, 0xc4] },
} as const satisfies Record<SparkNetworkName, object>;

/**
 * Whether `text` is a Bitcoin address on the network. Source: BIP-173 and BIP-350 for segwit; base58check otherwise.
 */
export function isLayer1Address(text: string, network: SparkNetworkName): boolean {
  return isSegwit(text, networks[network].prefix) || isBase58(text, networks[network].versions);
}

function isSegwit(text: string, prefix: string): boolean {
  const [, , version] = /^(bc|bcrt)1(.)/i.exec(text) ?? [];
  try {
    // Witness version 0 uses the BIP-173 checksum, later versions use the checksum of BIP-350.
    const codec = version?.toLowerCase() === 'q' ? bech32 : bech32m;
    const decoded = codec.decode(text as `${string}1${string}`);
    const [witness = 0, ...program] = decoded.words;
    const { length } = codec.fromWords(program);
    if (decoded.prefix !== prefix || witness > 16) return false;
    return witness === 0 ? length === 20 || length === 32 : length >= 2 && length <= 40;
  } catch {
    return false;
  }
}

function isBase58(text: string, versions: readonly number[]): boolean {
  try {
    const bytes = base58check.decode(text);
    return bytes.length === 21 && versions.includes(bytes[0]!);
  } catch {
    return false;
  }
}
