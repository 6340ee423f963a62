import { looseHexToBytes } from '../crypto/encoding.ts';
import type { ActionUnit, PolicyAction } from '../policy/action.ts';
import { type ChainType, chains } from '../signing/chains.ts';
import { decodeRawSign, type RawSignParams } from '../signing/sign-with-key.ts';
import { InvalidTransactionError } from '../signing/signing-errors.ts';
import { decodeSuiIntentMessage } from '../signing/sui.ts';
import { decodeTronRawData } from '../signing/tron/raw-data.ts';

/**
 * Decodes a `raw_sign` request into the action that policies evaluate. On Tron and Sui, transactions and bare hashes
 * are evaluated as `signTransactionBytes`; on the XRP Ledger, everything as an unreadable `xrpl_signTransaction`.
 * Everything else is `signRawMessageBytes`. On Ethereum, a message that looks like the input of another signing
 * method is unreadable.
 *
 * @throws SigningInputError
 */
export function decodeRawSignAction(chainType: ChainType, params: RawSignParams): PolicyAction {
  const { message } = decodeRawSign(params, chains[chainType].curve);
  // CHOICE: on chains whose transactions have rules of their own, a hash counts as a hidden transaction, so only
  // conditions on time can be satisfied. Permission to sign messages must not allow signing a transaction by its hash.
  if (chainType === 'xrpl') {
    return {
      method: 'xrpl_signTransaction',
      units: [{ label: 'hash', undecodable: 'only a hash is signed' }],
    };
  }
  if (message === undefined && (chainType === 'tron' || chainType === 'sui')) {
    return {
      method: 'signTransactionBytes',
      units: [{ label: 'hash', undecodable: 'only a hash was given' }],
    };
  }
  const units = message === undefined ? undefined : transactionUnits(chainType, message);
  if (units !== undefined) return { method: 'signTransactionBytes', units };
  if (message !== undefined && chainType === 'ethereum' && hasEthereumLayout(message)) {
    return {
      method: 'signRawMessageBytes',
      units: [{ label: 'message', undecodable: 'the bytes have the layout of a transaction or typed data' }],
    };
  }
  return {
    method: 'signRawMessageBytes',
    units: [
      message === undefined
        ? { label: 'hash', undecodable: 'only a hash was given' }
        : { label: 'message', messageBytes: message },
    ],
  };
}

function transactionUnits(chainType: string, bytes: Uint8Array): readonly ActionUnit[] | undefined {
  if (chainType === 'tron') return decodeTronUnits(bytes);
  return chainType === 'sui' ? decodeSuiUnits(bytes) : undefined;
}

/**
 * Returns the unit of the contract in a Tron transaction's raw data, or undefined if the bytes are not such a
 * transaction.
 */
export function decodeTronUnits(bytes: Uint8Array): readonly ActionUnit[] | undefined {
  // NOTE: this check comes first because it takes a tenth of the time of decoding. A message can have any content and
  // length.
  if (!hasContractField(bytes)) return undefined;
  let rawData: ReturnType<typeof decodeTronRawData>;
  try {
    rawData = decodeTronRawData(bytes);
  } catch (error) {
    if (!(error instanceof InvalidTransactionError)) throw error;
    return unknownTransaction(error.message);
  }
  if (rawData === undefined) return unknownTransaction();
  return rawData.contract.map(({ type, ...contract }, index) => {
    const { data, ...members } = contract as Record<string, string | number>;
    const fields = Object.entries(members).map(([name, value]): [string, string | bigint] => [
      name,
      typeof value === 'number' ? BigInt(value) : value,
    ]);
    return {
      label: `contract ${index}`,
      tronContract: {
        type,
        fields: Object.fromEntries(fields),
        data: data === undefined ? undefined : looseHexToBytes(String(data)),
      },
    };
  });
}

function unknownTransaction(undecodable = 'the transaction is of another kind'): readonly ActionUnit[] {
  return [{ label: 'transaction', undecodable }];
}

const CONTRACT_FIELD = 11;
// The size of a field after its key, by wire type. Group types (3 and 4) only delimit other fields.
const FIXED_SIZES: Readonly<Record<number, number>> = { 1: 8, 3: 0, 4: 0, 5: 4 };

/**
 * Returns whether a node could read these bytes as a transaction, which is protobuf with the field `contract`. Parses
 * as leniently as protobuf allows: nodes ignore unknown fields, so bytes that only our strict reader rejects could
 * still move money.
 */
function hasContractField(bytes: Uint8Array): boolean {
  let at = 0;
  let isFound = false;
  const varint = (): number => {
    // A varint can be longer than its value needs. Only its low 32 bits count.
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at++] ?? 0;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    at = Number.POSITIVE_INFINITY;
    return 0;
  };
  while (at < bytes.length) {
    const key = varint();
    const wireType = key & 7;
    isFound ||= key === ((CONTRACT_FIELD << 3) | 2);
    if (wireType === 0 || wireType === 2) {
      const value = varint();
      if (wireType === 2) at += value;
    } else {
      at += FIXED_SIZES[wireType] ?? Number.POSITIVE_INFINITY;
    }
  }
  return isFound && at === bytes.length;
}

function decodeSuiUnits(bytes: Uint8Array): readonly ActionUnit[] | undefined {
  try {
    const transaction = decodeSuiIntentMessage(bytes);
    if (transaction === undefined) return undefined;
    const suiCommands = transaction.commands.map(({ commandName: name, ...rest }) => ({ name, ...rest }));
    return [{ label: 'transaction', suiCommands }];
  } catch (error) {
    if (!(error instanceof InvalidTransactionError)) throw error;
    return unknownTransaction(error.message);
  }
}

// The first byte of EIP-191 data: messages of `personal_sign` (0x19 'E') and typed data (0x19 0x01).
const SIGNED_DATA = 0x19;
// The largest type byte before an RLP list (EIP-2718). It covers EIP-7702 authorizations (0x05) and Tempo (0x76,
// 0x78).
const MAX_TRANSACTION_TYPE = 0x7f;

/** Returns whether another signing method could produce these bytes, and therefore the same hash. */
function hasEthereumLayout(bytes: Uint8Array): boolean {
  const first = bytes[0] ?? 0;
  return (
    first === SIGNED_DATA ||
    isRlpList(bytes) ||
    (first <= MAX_TRANSACTION_TYPE && isRlpList(bytes.subarray(1)))
  );
}

/**
 * Returns whether the bytes are exactly one RLP list according to its declared length. Source: Ethereum yellow paper,
 * appendix B.
 */
function isRlpList(bytes: Uint8Array): boolean {
  const head = bytes[0] ?? 0;
  if (head < 0xc0) return false;
  if (head < 0xf8) return bytes.length === 1 + head - 0xc0;
  // 0xf7 + size of the length || length, big-endian || items
  const sizeBytes = head - 0xf7;
  const size = bytes.subarray(1, 1 + sizeBytes).reduce((sum, byte) => sum * 256 + byte, 0);
  return bytes.length === 1 + sizeBytes + size;
}
