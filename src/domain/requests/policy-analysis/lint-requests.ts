import { sha256 } from '@noble/hashes/sha2.js';
import { sha3_256 } from '@noble/hashes/sha3.js';
import {
  bytesTo0xHex,
  bytesToBase64,
  canonicalJson,
  concatBytes,
  hexToBytes,
  littleEndian,
  utf8ToBytes,
} from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { bytesField, int64Field } from '../../../engine/signing/tron/protobuf.ts';

export interface TriedRequest {
  readonly operation: 'walletRpc' | 'rawSignWallet' | 'exportWallet' | 'transferFromWallet';
  /** The method that rules name. For a request that rules cannot name, its RPC method. */
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  /**
   * Conditions that only such requests satisfy. Without them, a rule about the request would cover its whole method.
   */
  readonly marks?: readonly ConditionInput[] | undefined;
  /** The token that the request moves. A rule that names the token is meant to allow the request. */
  readonly token?: string | undefined;
}

export type OtherKind =
  | 'hash_signing'
  | 'raw_signing'
  | 'user_operation_hash'
  | 'sibling_call'
  | 'token_transfer';

/** Requests with the same effect as a denied call, to which the rules about the call do not apply. */
interface OtherWay {
  readonly kind: OtherKind;
  /** The method of the denied call. By default, any method that a rule names. */
  readonly of?: string | undefined;
  readonly requests: readonly TriedRequest[];
}

export interface Effect {
  /** The requests with this effect whose methods can have rules. */
  readonly calls: readonly TriedRequest[];
  readonly others: readonly OtherWay[];
}

/** The values from which the tried requests are built. */
export interface LintSubject {
  readonly conditions: readonly ConditionInput[];
  /** The address of the wallet; if undefined, an example address is used. */
  readonly sender: string | undefined;
}

/** A public key to which exports are encrypted: the P-256 base point as SubjectPublicKeyInfo. */
const RECIPIENT =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==';
const hpke = { encryption_type: 'HPKE', recipient_public_key: RECIPIENT };

/** A request to export a wallet's private key. */
export const keyExport: TriedRequest = {
  operation: 'exportWallet',
  method: 'exportPrivateKey',
  request: hpke,
};

/** A request to export the seed phrase from which a wallet's key is derived. */
export const phraseExport: TriedRequest = {
  operation: 'exportWallet',
  method: 'exportSeedPhrase',
  request: { ...hpke, export_seed_phrase: true },
};

export function rpc(
  method: string,
  request: object,
  more: Pick<TriedRequest, 'marks' | 'token'> = {},
): TriedRequest {
  return { operation: 'walletRpc', method, request: { method, ...request }, ...more };
}

/**
 * Returns a request for the raw signature of a 32-byte hash.
 *
 * @param method the method under which the chain type evaluates it.
 */
export function hashRequest(hash: Uint8Array, method = 'signRawMessageBytes'): TriedRequest {
  return { operation: 'rawSignWallet', method, request: { params: { hash: bytesTo0xHex(hash) } } };
}

/**
 * Returns a request for the raw signature of bytes.
 *
 * @param method the method under which the chain type evaluates them.
 */
export function bytesRequest(
  bytes: Uint8Array,
  hashFunction: 'keccak256' | 'sha256' | 'blake2b256',
  method = 'signRawMessageBytes',
): TriedRequest {
  const params = { bytes: bytesTo0xHex(bytes), encoding: 'hex', hash_function: hashFunction };
  return { operation: 'rawSignWallet', method, request: { params } };
}

export function transferRequest(request: Readonly<Record<string, unknown>>): TriedRequest {
  return { operation: 'transferFromWallet', method: 'transfer', request };
}

/** Returns the values in the conditions that `isMeant` accepts, without those in condition sets. */
export function namedValues(
  conditions: readonly ConditionInput[],
  isMeant: (condition: ConditionInput) => boolean,
): string[] {
  return conditions
    .filter((condition) => condition.operator !== 'in_condition_set' && isMeant(condition))
    .flatMap(({ value }) => value);
}

/** Returns 1 and the numbers on both sides of the boundaries in conditions, as far as they are below `limit`. */
export function boundaryNumbers(values: readonly string[], limit: bigint): readonly bigint[] {
  const numbers = values.filter((value) => /^(?:0x[0-9a-f]+|\d+)$/i.test(value)).map(BigInt);
  const candidates = [1n, ...numbers.flatMap((each) => [each + 1n, each])];
  return distinct(candidates, MAX_VALUES).filter((value) => value >= 0n && value < limit);
}

/** The maximum number of values tried per field. The product of these numbers bounds the work. */
const MAX_VALUES = 5;
export const MAX_RECEIVERS = 4;

export function distinct<T>(values: readonly T[], most: number): readonly T[] {
  return [...new Set(values)].slice(0, most);
}

/** A transaction in the form that is hashed with SHA-256 and signed. */
interface Preimage {
  readonly bytes: Uint8Array;
  /** The RPC method that signs the transaction, if it has no rule method. */
  readonly signing?: TriedRequest | undefined;
}

type MakePreimage = (sender: string | undefined) => Preimage;

/** Transactions for the chain types whose transactions `raw_sign` signs, either as a hash or as the bytes to hash. */
const preimages: Readonly<Record<string, MakePreimage>> = {
  // The first of two SHA-256 rounds.
  'bitcoin-segwit': () => ({ bytes: sha256(utf8ToBytes('a transaction')) }),
  cosmos: () => ({ bytes: cosmosPayment() }),
  near: nearPayment,
  stellar: () => ({ bytes: stellarPayment() }),
  ton: () => ({ bytes: tonPayment() }),
};

/**
 * Chain types on which a signed 32-byte hash can authorize a transaction, but whose transactions `raw_sign` cannot
 * hash.
 */
const hashed: ReadonlySet<string> = new Set(['bitcoin-taproot', 'pearl', 'starknet']);

/** Chain types on which `raw_sign` signs the given bytes as they are, so the bytes may be a transaction. */
const unhashed: ReadonlySet<string> = new Set(['aptos', 'movement']);

/** Returns a `raw_sign` request for a whole transaction, on chain types where `raw_sign` needs no hash. */
export function unhashedTransaction(chainType: string, sender: string | undefined): TriedRequest | undefined {
  return unhashed.has(chainType) ? hashRequest(aptosSigningMessage(aptosPayment(sender))) : undefined;
}

export function* rawSignEffects(chainType: string, { sender, conditions }: LintSubject): Generator<Effect> {
  if (unhashed.has(chainType)) {
    const transaction = aptosPayment(sender);
    const signing = rpc('aptos_signTransaction', { params: { transaction: bytesTo0xHex(transaction) } });
    yield { calls: [hashRequest(aptosSigningMessage(transaction)), signing], others: [] };
    return;
  }
  const make = Object.hasOwn(preimages, chainType) ? preimages[chainType] : undefined;
  if (make === undefined) {
    // The hash is below the order of the Stark curve.
    if (hashed.has(chainType)) yield { calls: [hashRequest(hexToBytes(`01${'11'.repeat(31)}`))], others: [] };
    return;
  }
  yield effectOf(make(sender));
  if (chainType !== 'cosmos') return;
  for (const memo of distinct(wordsIn(conditions), MAX_WORDS)) yield effectOf({ bytes: aminoPayment(memo) });
}

function effectOf({ bytes, signing }: Preimage): Effect {
  const hash = hashRequest(sha256(bytes));
  return {
    calls: signing === undefined ? [hash] : [hash, signing],
    others: [{ kind: 'raw_signing', requests: [bytesRequest(bytes, 'sha256')] }],
  };
}

const MAX_WORDS = 4;

/** Returns the strings that conditions look for in a message. */
function wordsIn(conditions: LintSubject['conditions']): readonly string[] {
  return namedValues(conditions, (each) => each.field_source === 'message' && each.field === 'content');
}

/** Encodes the StdSignDoc of a MsgSend, a transaction in text form. Source: cosmos-sdk, SIGN_MODE_LEGACY_AMINO_JSON. */
function aminoPayment(memo: string): Uint8Array {
  const amount = [{ amount: '1', denom: 'uatom' }];
  const value = { amount, from_address: 'cosmos1sender', to_address: 'cosmos1stranger' };
  return utf8ToBytes(
    canonicalJson({
      ...{ account_number: '1', chain_id: 'cosmoshub-4', fee: { amount, gas: '200000' } },
      ...{ memo, msgs: [{ type: 'cosmos-sdk/MsgSend', value }], sequence: '1' },
    }),
  );
}

/** Encodes the SignDoc of a MsgSend. Source: cosmos-sdk, tx.proto. */
function cosmosPayment(): Uint8Array {
  const text = (number: number, value: string) => bytesField(number, utf8ToBytes(value));
  const [from, to] = ['cosmos1sender', 'cosmos1stranger'];
  const coin = concatBytes(text(1, 'uatom'), text(2, '1'));
  const send = concatBytes(text(1, from), text(2, to), bytesField(3, coin));
  const message = concatBytes(text(1, '/cosmos.bank.v1beta1.MsgSend'), bytesField(2, send));
  const fee = concatBytes(bytesField(1, coin), int64Field(2, 200_000n));
  return concatBytes(
    bytesField(1, bytesField(1, message)),
    bytesField(2, bytesField(2, fee)),
    text(3, 'cosmoshub-4'),
    int64Field(4, 1n),
  );
}

/** Encodes a transfer from an implicit account in Borsh. Source: near-primitives, transaction.rs. */
function nearPayment(sender = '11'.repeat(32)): Preimage {
  const text = (value: string) => concatBytes(littleEndian(BigInt(value.length), 4), utf8ToBytes(value));
  const bytes = concatBytes(
    text(sender),
    Uint8Array.of(0),
    hexToBytes(sender),
    littleEndian(1n, 8),
    text('de'.repeat(32)),
    new Uint8Array(32),
    // One action of type 3 (Transfer).
    littleEndian(1n, 4),
    Uint8Array.of(3),
    littleEndian(1n, 16),
  );
  return { bytes, signing: rpc('near_signTransaction', { params: { transaction: bytesToBase64(bytes) } }) };
}

/**
 * Returns the BCS encoding of a transaction that calls `aptos_account::transfer`. Source: aptos-core,
 * types/src/transaction.
 */
function aptosPayment(sender = `0x${'11'.repeat(32)}`): Uint8Array {
  const text = (value: string) => concatBytes(Uint8Array.of(value.length), utf8ToBytes(value));
  const framework = hexToBytes(`${'00'.repeat(31)}01`);
  return concatBytes(
    // sender || sequence number || EntryFunction || module and function || no types
    ...[hexToBytes(sender.slice(2)), littleEndian(1n, 8), Uint8Array.of(2)],
    ...[framework, text('aptos_account'), text('transfer'), Uint8Array.of(0)],
    // two arguments: recipient and amount
    ...[Uint8Array.of(2, 32), new Uint8Array(32).fill(0xde), Uint8Array.of(8), littleEndian(1n, 8)],
    // max gas || gas price || expiration || chain id of the main network
    ...[littleEndian(2_000n, 8), littleEndian(100n, 8), littleEndian(4_102_444_800n, 8), Uint8Array.of(1)],
  );
}

/** Returns prefix || transaction, which Ed25519 signs without another hash. */
function aptosSigningMessage(transaction: Uint8Array): Uint8Array {
  return concatBytes(sha3_256(utf8ToBytes('APTOS::RawTransaction')), transaction);
}

/**
 * Encodes a payment for its signature: network id || ENVELOPE_TYPE_TX || transaction with one payment. Source:
 * Stellar-transaction.x.
 */
function stellarPayment(): Uint8Array {
  const network = sha256(utf8ToBytes('Public Global Stellar Network ; September 2015'));
  const u32 = (value: number) => Uint8Array.of(0, 0, value >> 8, value & 0xff);
  const account = (byte: number) => concatBytes(u32(0), new Uint8Array(32).fill(byte));
  const u64 = (value: number) => concatBytes(u32(0), u32(value));
  return concatBytes(
    network,
    u32(2),
    // source, fee, sequence, no preconditions, no memo, one operation without a source
    ...[account(0x11), u32(100), u64(1), u32(0), u32(0), u32(1), u32(0)],
    // PAYMENT of one stroop of the native asset
    ...[u32(1), account(0xde), u32(0), u64(1), u32(0)],
  );
}

/**
 * Encodes a payment of a version 4 wallet for its signature, which covers the hash of a cell. The result is the SHA-256
 * preimage of that hash: two descriptors || data || depth and hash of the cell that it refers to.
 *
 * The cell is the body that the wallet verifies: subwallet || valid until || seqno || operation || mode, and the
 * message to send. Source: TON docs, cell representation; wallet-v4-code.fc.
 */
function tonPayment(): Uint8Array {
  const data = [0x29a9a317, 0xffffffff, 1].map((value) => littleEndian(BigInt(value), 4).reverse());
  // One reference; 14 whole bytes, counted in half bytes; a message without references.
  return concatBytes(
    Uint8Array.of(1, 28),
    ...data,
    Uint8Array.of(0, 3),
    new Uint8Array(2),
    new Uint8Array(32).fill(0xde),
  );
}
