import { sha256 } from '@noble/hashes/sha2.js';
import { canonicalJson } from '../../../crypto/canonical-json.ts';
import {
  bytesToBase64,
  concatBytes,
  hexToBytes,
  littleEndian,
  utf8ToBytes,
} from '../../../crypto/encoding.ts';
import { bytesField, int64Field } from '../../../signing/tron/protobuf.ts';
import {
  bytesRequest,
  distinct,
  type Effect,
  hashRequest,
  type LintSubject,
  namedValues,
  rpc,
  type TriedRequest,
} from './lint-requests.ts';

/** A transaction in the form that is hashed with SHA-256 and signed. */
interface Preimage {
  readonly bytes: Uint8Array;
  /** The rpc method that signs it, of no rule. */
  readonly signing?: TriedRequest | undefined;
}

type MakePreimage = (sender: string | undefined) => Preimage;

/** Chain types whose transactions are signed by `raw_sign`: as a hash, or as the bytes that are hashed. */
const preimages: Readonly<Record<string, MakePreimage>> = {
  // The first of two SHA-256.
  'bitcoin-segwit': () => ({ bytes: sha256(utf8ToBytes('a transaction')) }),
  cosmos: () => ({ bytes: cosmosPayment() }),
  near: nearPayment,
  stellar: () => ({ bytes: stellarPayment() }),
};

/** Chain types that sign any 32-byte hash of a transaction, whose bytes cannot be hashed by `raw_sign`. */
const hashed: ReadonlySet<string> = new Set(['bitcoin-taproot', 'pearl', 'starknet', 'ton']);

export function* rawSignEffects(chainType: string, { sender, conditions }: LintSubject): Generator<Effect> {
  const make = Object.hasOwn(preimages, chainType) ? preimages[chainType] : undefined;
  if (make === undefined) {
    // Below the order of the Stark curve.
    if (hashed.has(chainType)) yield { calls: [hashRequest(hexToBytes(`01${'11'.repeat(31)}`))], others: [] };
    return;
  }
  yield effectOf(make(sender));
  if (chainType !== 'cosmos') return;
  for (const memo of distinct(wordsIn(conditions), MOST_WORDS)) yield effectOf({ bytes: aminoPayment(memo) });
}

function effectOf({ bytes, signing }: Preimage): Effect {
  const hash = hashRequest(sha256(bytes));
  return {
    calls: signing === undefined ? [hash] : [hash, signing],
    others: [{ kind: 'raw_signing', requests: [bytesRequest(bytes, 'sha256')] }],
  };
}

const MOST_WORDS = 4;

/** What conditions look for in a message. */
function wordsIn(conditions: LintSubject['conditions']): readonly string[] {
  return namedValues(conditions, (each) => each.field_source === 'message' && each.field === 'content');
}

/** StdSignDoc of a MsgSend: a transaction that is text. Source: cosmos-sdk, SIGN_MODE_LEGACY_AMINO_JSON. */
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

/** SignDoc of a MsgSend. Source: cosmos-sdk, tx.proto. */
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

/** Borsh of a transfer from an implicit account. Source: near-primitives, transaction.rs. */
function nearPayment(sender = '11'.repeat(32)): Preimage {
  const text = (value: string) => concatBytes(littleEndian(BigInt(value.length), 4), utf8ToBytes(value));
  const bytes = concatBytes(
    text(sender),
    Uint8Array.of(0),
    hexToBytes(sender),
    littleEndian(1n, 8),
    text('de'.repeat(32)),
    new Uint8Array(32),
    // One action of type 3, Transfer.
    littleEndian(1n, 4),
    Uint8Array.of(3),
    littleEndian(1n, 16),
  );
  return { bytes, signing: rpc('near_signTransaction', { params: { transaction: bytesToBase64(bytes) } }) };
}

/** network id || ENVELOPE_TYPE_TX || transaction with one payment. Source: Stellar-transaction.x. */
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
