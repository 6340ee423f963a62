import { sha256 } from '@noble/hashes/sha2.js';
import { base58xrp, hex } from '@scure/base';

const ACCOUNT_BYTES = 20;
const CHECKSUM_BYTES = 4;
const MAX_ADDRESS = 47;
const CLASSIC_PREFIX = '00';
// X-addresses of the main network and of test networks. Source: XLS-5.
const X_PREFIXES = ['0544', '0493'];
/** Flag 0 and no tag. */
const NO_TAG = '00'.repeat(9);
const CLASSIC = /^00[0-9a-f]{40}$/;
const EXTENDED = /^(?:0544|0493)([0-9a-f]{40})(?:00){9}$/;

/**
 * The classic spelling (r…) of an address. Undefined for other text, and for an X-address with a tag, because a tag
 * identifies more than an account.
 */
export function readXrplAddress(text: string): string | undefined {
  const payload = decodeChecked(text);
  if (CLASSIC.test(payload)) return text;
  const [, account] = EXTENDED.exec(payload) ?? [];
  return account === undefined ? undefined : encodeChecked(CLASSIC_PREFIX + account);
}

/** The X-addresses without a tag of a classic address. */
export function xrplXAddresses(classic: string): readonly string[] {
  const account = decodeChecked(classic).slice(CLASSIC_PREFIX.length);
  if (account.length !== 2 * ACCOUNT_BYTES) return [];
  return X_PREFIXES.map((prefix) => encodeChecked(prefix + account + NO_TAG));
}

/** base58xrp(payload || first 4 bytes of sha256(sha256(payload))) */
function encodeChecked(payloadHex: string): string {
  const payload = hex.decode(payloadHex);
  return base58xrp.encode(Uint8Array.of(...payload, ...checksumOf(payload)));
}

/** The payload as hex; empty for text without a valid checksum. */
function decodeChecked(text: string): string {
  if (text.length > MAX_ADDRESS) return '';
  try {
    const bytes = base58xrp.decode(text);
    const payload = bytes.subarray(0, -CHECKSUM_BYTES);
    const isIntact = hex.encode(checksumOf(payload)) === hex.encode(bytes.subarray(-CHECKSUM_BYTES));
    return isIntact ? hex.encode(payload) : '';
  } catch {
    return '';
  }
}

function checksumOf(payload: Uint8Array): Uint8Array {
  return sha256(sha256(payload)).subarray(0, CHECKSUM_BYTES);
}

const CODE = /^[A-Za-z0-9?!@#$%^&*(){}[\]|]{3}$/;
const CURRENCY_HEX = /^[0-9A-F]{40}$/;
/** 12 zero bytes || code (3 bytes) || 5 zero bytes. Source: XRPL docs, currency formats. */
const STANDARD = /^0{24}([0-9A-F]{6})0{10}$/;
const NATIVE_CODE = 'XRP';

/**
 * A currency code in the notation of the ledger's codec: three characters if possible, otherwise 40 upper-case hex
 * digits. Undefined for other text, and for the code of the native currency, which no issued amount has.
 */
export function readXrplCurrency(text: string): string | undefined {
  if (CODE.test(text)) return text === NATIVE_CODE ? undefined : text;
  const upper = text.toUpperCase();
  if (!CURRENCY_HEX.test(upper)) return undefined;
  const code = Buffer.from(STANDARD.exec(upper)?.[1] ?? '', 'hex').toString('latin1');
  return CODE.test(code) && code !== NATIVE_CODE ? code : upper;
}

/** The other spelling of a currency whose code has three characters. */
export function xrplCurrencyHex(code: string): string | undefined {
  if (!CODE.test(code)) return undefined;
  return `${'0'.repeat(24)}${hex.encode(Buffer.from(code, 'latin1')).toUpperCase()}${'0'.repeat(10)}`;
}
