import { sha256 } from '@noble/hashes/sha2.js';
import { bech32 } from '@scure/base';
import { concatBytes, utf8ToBytes } from '../crypto/encoding.ts';
import { ecBackend } from '../crypto/secp256k1.ts';
import type { SparkNetworkName } from './spark.ts';

/** The fields of a Lightning invoice. Source: BOLT 11. */
export interface LightningInvoice {
  readonly network: SparkNetworkName;
  /** The amount in satoshis. Undefined if the payer chooses it. */
  readonly sats: bigint | undefined;
  /** Unix seconds, below 2^35. */
  readonly createdAtSeconds: number;
  /** How long the invoice is valid. Undefined for the default of one hour. */
  readonly expirySeconds: number | undefined;
  /** SHA-256 of the preimage, 32 bytes. */
  readonly paymentHash: Uint8Array;
  /** 32 bytes. */
  readonly paymentSecret: Uint8Array;
  /** A description of at most 639 bytes, or the 32-byte SHA-256 of a longer one. */
  readonly description: string | Uint8Array;
  /** A private channel through which the receiving node can be reached. */
  readonly hint: RouteHint | undefined;
  /** Bytes that the payer returns with the payment. */
  readonly metadata: Uint8Array | undefined;
}

interface RouteHint {
  /** The compressed key. */
  readonly nodeKey: Uint8Array;
  /** 8 bytes. */
  readonly channelId: Uint8Array;
}

/** The fields that `readInvoice` returns. */
export interface ReadInvoice
  extends Pick<LightningInvoice, 'network' | 'sats' | 'createdAtSeconds' | 'hint' | 'metadata'> {
  /** One hour unless the invoice states otherwise. */
  readonly expirySeconds: number;
  readonly paymentHash: Uint8Array;
  /** The uncompressed key that signed the invoice. */
  readonly nodeKey: Uint8Array;
}

const PREFIX = { MAINNET: 'lnbc', REGTEST: 'lnbcrt' } as const;
/** The type numbers of tagged fields. */
const FIELD = {
  paymentHash: 1,
  routeHint: 3,
  features: 5,
  expiry: 6,
  description: 13,
  paymentSecret: 16,
  descriptionHash: 23,
  metadata: 27,
} as const;
// Features (BOLT 9) that a payer must support: variable onion, payment secret, and metadata if present.
const FEATURES = (1n << 8n) | (1n << 14n);
const METADATA_FEATURE = 1n << 48n;
const TIMESTAMP_WORDS = 7;
// r || s || recovery id: 65 bytes
const SIGNATURE_WORDS = 104;
const DEFAULT_EXPIRY_SECONDS = 3600;

/** Encodes an invoice and signs it with the node's key. Source: BOLT 11. */
export function encodeInvoice(invoice: LightningInvoice, nodeSecret: Uint8Array): string {
  const { description, expirySeconds, hint, metadata } = invoice;
  const features = metadata === undefined ? FEATURES : FEATURES | METADATA_FEATURE;
  const data = [
    ...wordsOf(BigInt(invoice.createdAtSeconds), TIMESTAMP_WORDS),
    ...field(FIELD.paymentSecret, bech32.toWords(invoice.paymentSecret)),
    ...field(FIELD.paymentHash, bech32.toWords(invoice.paymentHash)),
    ...(typeof description === 'string'
      ? field(FIELD.description, bech32.toWords(utf8ToBytes(description)))
      : field(FIELD.descriptionHash, bech32.toWords(description))),
    ...(expirySeconds === undefined ? [] : field(FIELD.expiry, wordsOf(BigInt(expirySeconds)))),
    ...(metadata === undefined ? [] : field(FIELD.metadata, bech32.toWords(metadata))),
    ...field(FIELD.features, wordsOf(features)),
    // node key || channel id || base fee, fee per million (4 bytes each) || time lock difference (2 bytes)
    ...(hint === undefined
      ? []
      : field(
          FIELD.routeHint,
          bech32.toWords(concatBytes(hint.nodeKey, hint.channelId, new Uint8Array(10))),
        )),
  ];
  const prefix = `${PREFIX[invoice.network]}${amountText(invoice.sats)}`;
  const { compact, recoveryId } = ecBackend.sign(digestOf(prefix, data), nodeSecret);
  const signature = bech32.toWords(concatBytes(compact, Uint8Array.of(recoveryId)));
  return bech32.encode(prefix, [...data, ...signature], false);
}

/**
 * Decodes an invoice. Returns undefined for an invalid invoice, other networks, and amounts that are not whole sats.
 */
export function readInvoice(text: string): ReadInvoice | undefined {
  try {
    const { prefix, words } = bech32.decode(text as `${string}1${string}`, false);
    const amount = readPrefix(prefix);
    const dataWords = words.length - SIGNATURE_WORDS;
    if (amount === undefined || dataWords < TIMESTAMP_WORDS) return undefined;
    const data = words.slice(0, dataWords);
    const fields = fieldsOf(data.slice(TIMESTAMP_WORDS));
    const paymentHash = fields.get(FIELD.paymentHash);
    if (paymentHash?.length !== 52) return undefined;
    const expiry = fields.get(FIELD.expiry);
    const metadata = fields.get(FIELD.metadata);
    const signature = packBits(words.slice(dataWords));
    const recovered = { compact: signature.subarray(0, 64), recoveryId: signature[64] ?? 0 };
    return {
      ...amount,
      createdAtSeconds: Number(numberOf(data.slice(0, TIMESTAMP_WORDS))),
      expirySeconds: expiry === undefined ? DEFAULT_EXPIRY_SECONDS : Number(numberOf(expiry)),
      paymentHash: packBits(paymentHash).subarray(0, 32),
      hint: readHint(fields.get(FIELD.routeHint)),
      metadata: metadata === undefined ? undefined : wholeBytes(metadata),
      nodeKey: ecBackend.recover(recovered, digestOf(prefix, data)),
    };
  } catch {
    return undefined;
  }
}

function readHint(words: readonly number[] | undefined): RouteHint | undefined {
  if (words === undefined) return undefined;
  const bytes = wholeBytes(words);
  return { nodeKey: bytes.slice(0, 33), channelId: bytes.slice(33, 41) };
}

/** Returns the tagged fields by type. If a type occurs several times, the first field is used. */
function fieldsOf(words: readonly number[]): ReadonlyMap<number, readonly number[]> {
  const fields = new Map<number, readonly number[]>();
  for (let at = 0; at + 3 <= words.length; ) {
    const [type = 0, high = 0, low = 0] = words.slice(at, at + 3);
    const end = at + 3 + high * 32 + low;
    if (end > words.length) throw new Error('expected a field within the invoice');
    if (!fields.has(type)) fields.set(type, words.slice(at + 3, end));
    at = end;
  }
  return fields;
}

// type || length in words (10 bits) || words
function field(type: number, words: readonly number[]): number[] {
  return [type, words.length >> 5, words.length & 31, ...words];
}

// sha256(UTF-8 of the prefix || data, padded with zero bits to a whole byte)
function digestOf(prefix: string, data: readonly number[]): Uint8Array {
  return sha256(concatBytes(utf8ToBytes(prefix), packBits(data)));
}

function wordsOf(value: bigint, count = 0): number[] {
  const words: number[] = [];
  for (let rest = value; rest > 0n; rest >>= 5n) words.unshift(Number(rest & 31n));
  return [...new Array<number>(Math.max(0, count - words.length)).fill(0), ...words];
}

function numberOf(words: readonly number[]): bigint {
  return words.reduce((sum, word) => (sum << 5n) | BigInt(word), 0n);
}

function packBits(words: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((words.length * 5) / 8));
  for (const [index, word] of words.entries()) {
    // A word that starts in the last 4 bits of a byte continues in the next byte.
    const at = index * 5;
    const placed = word << (11 - (at % 8));
    bytes[at >> 3]! |= placed >> 8;
    if (at % 8 > 3) bytes[(at >> 3) + 1]! |= placed & 0xff;
  }
  return bytes;
}

/** Drops the padding bits of the last word. */
function wholeBytes(words: readonly number[]): Uint8Array {
  return packBits(words).slice(0, Math.floor((words.length * 5) / 8));
}

// Amounts are written in the largest unit of bitcoin (none, milli, micro, nano) that needs no fraction. A sat is 10
// nano.
const UNITS = [
  [100_000_000n, ''],
  [100_000n, 'm'],
  [100n, 'u'],
] as const;

function amountText(sats: bigint | undefined): string {
  if (sats === undefined) return '';
  for (const [unit, letter] of UNITS) if (sats % unit === 0n) return `${sats / unit}${letter}`;
  return `${sats * 10n}n`;
}

function readPrefix(prefix: string): Pick<ReadInvoice, 'network' | 'sats'> | undefined {
  const [, chain, digits, letter = ''] = /^ln(bc|bcrt)(?:([1-9]\d{0,17})([munp]?))?$/.exec(prefix) ?? [];
  if (chain === undefined) return undefined;
  const network = chain === 'bc' ? 'MAINNET' : 'REGTEST';
  if (digits === undefined) return { network, sats: undefined };
  const parts = { '': 1n, m: 1_000n, u: 1_000_000n, n: 1_000_000_000n, p: 1_000_000_000_000n }[letter]!;
  const scaled = BigInt(digits) * 100_000_000n;
  return scaled % parts === 0n ? { network, sats: scaled / parts } : undefined;
}
