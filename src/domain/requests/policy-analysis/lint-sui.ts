import { blake2b } from '@noble/hashes/blake2.js';
import { concatBytes, hexToBytes, littleEndian } from '../../../engine/crypto/encoding.ts';
import {
  boundaryNumbers,
  bytesRequest,
  distinct,
  type Effect,
  hashRequest,
  type LintSubject,
  MAX_RECEIVERS,
  namedValues,
} from './lint-requests.ts';

const METHOD = 'signTransactionBytes';
const SENDER = `0x${'11'.repeat(32)}`;
const STRANGER = `0x${'de'.repeat(32)}`;
const GAS_PRICE = 1_000n;
const GAS_BUDGET = 10_000_000n;

/** Yields payments with the recipients and amounts that conditions name. */
export function* suiEffects({ conditions, sender = SENDER }: LintSubject): Generator<Effect> {
  const named = (field: string) =>
    namedValues(
      conditions,
      (each) => each.field_source === 'sui_transfer_objects_command' && each.field === field,
    );
  for (const to of distinct([STRANGER, ...named('recipient')], MAX_RECEIVERS)) {
    for (const amount of boundaryNumbers(named('amount'), 2n ** 64n)) {
      const bytes = encodePayment({ sender, to, amount });
      const hash = blake2b(bytes, { dkLen: 32 });
      yield {
        calls: [bytesRequest(bytes, 'blake2b256', METHOD)],
        others: [{ kind: 'hash_signing', requests: [hashRequest(hash, METHOD)] }],
      };
    }
  }
}

/**
 * Encodes the intent message of a transaction that splits an amount off the gas coin and transfers it. Source:
 * sui-types, transaction.rs.
 */
function encodePayment({
  sender,
  to,
  amount,
}: {
  readonly sender: string;
  readonly to: string;
  readonly amount: bigint;
}): Uint8Array {
  const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
  const address = (text: string): Uint8Array => hexToBytes(text.slice(2).padStart(64, '0'));
  const u64 = (value: bigint): Uint8Array => littleEndian(value, 8);
  const none = new Uint8Array(32);
  return concatBytes(
    bytes(0, 0, 0),
    // Version 1 of a programmable transaction, with two pure inputs.
    bytes(0, 0, 2),
    bytes(0, 8),
    u64(amount),
    bytes(0, 32),
    address(to),
    // SplitCoins(gas, [input 0]), TransferObjects([result 0], input 1)
    bytes(2),
    bytes(2, 0, 1, 1, 0, 0),
    bytes(1, 1, 2, 0, 0, 1, 1, 0),
    address(sender),
    // One gas coin: id, version, digest.
    bytes(1),
    none,
    u64(1n),
    bytes(32),
    none,
    address(sender),
    u64(GAS_PRICE),
    u64(GAS_BUDGET),
    // No expiration.
    bytes(0),
  );
}
