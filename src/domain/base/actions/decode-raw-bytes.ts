import { looseHexToBytes } from '../../../crypto/encoding.ts';
import type { ActionUnit, PolicyAction } from '../../../policy/action.ts';
import { type ChainType, chains } from '../../../signing/chains.ts';
import { decodeRawSign, type RawSignParams } from '../../../signing/raw-sign.ts';
import { decodeSuiIntentMessage } from '../../../signing/sui/transaction.ts';
import { decodeTronRawData } from '../../../signing/tron/raw-data.ts';

/**
 * What a `raw_sign` request does. Bytes that are a Tron or Sui transaction are judged as one
 * (`signTransactionBytes`), and so is a hash there, all else as a message (`signRawMessageBytes`). On ethereum a message that is laid out like
 * something of its own method cannot be read as one.
 *
 * @throws SigningInputError
 */
export function decodeRawSignAction(chainType: ChainType, params: RawSignParams): PolicyAction {
  const { message } = decodeRawSign(params, chains[chainType].curve);
  // CHOICE: where transactions have rules of their own, a hash stands for a transaction that is not shown, so that
  // only conditions on time can hold: whoever may sign messages must not sign a transaction by its hash.
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

/** The contract in a Tron transaction's raw data; undefined when the bytes are no such transaction. */
export function decodeTronUnits(bytes: Uint8Array): readonly ActionUnit[] | undefined {
  let rawData: ReturnType<typeof decodeTronRawData>;
  try {
    rawData = decodeTronRawData(bytes);
  } catch {
    return unknownTransaction();
  }
  if (rawData === undefined) return hasContractField(bytes) ? unknownTransaction() : undefined;
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

function unknownTransaction(): readonly ActionUnit[] {
  return [{ label: 'transaction', undecodable: 'the transaction is of another kind' }];
}

const CONTRACT_FIELD = 11;
// Bytes that a field of each wire type has behind its key; the two of groups only bracket other fields.
const FIXED_SIZES: Readonly<Record<number, number>> = { 1: 8, 3: 0, 4: 0, 5: 4 };

/**
 * Whether a node could read a transaction here: protobuf with the field `contract`, as leniently as protobuf is read.
 * Nodes keep fields that they do not know, so bytes that only our own reader refuses may still move money.
 */
function hasContractField(bytes: Uint8Array): boolean {
  let at = 0;
  let isFound = false;
  const varint = (): number => {
    // Of longer spellings only the low bits count.
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
  } catch {
    return [{ label: 'transaction', undecodable: 'a transaction with commands that are not known' }];
  }
}

// EIP-191: messages of `personal_sign` (0x19 'E') and typed data (0x19 0x01).
const SIGNED_DATA = 0x19;
// EIP-2718: the types that come before the list; EIP-7702 authorizations (0x05) and Tempo's (0x76, 0x78) alike.
const MAX_TRANSACTION_TYPE = 0x7f;

/** Whether the bytes may be what another method signs: its hash would be the same. */
function hasEthereumLayout(bytes: Uint8Array): boolean {
  const first = bytes[0] ?? 0;
  return (
    first === SIGNED_DATA ||
    isRlpList(bytes) ||
    (first <= MAX_TRANSACTION_TYPE && isRlpList(bytes.subarray(1)))
  );
}

/** Whether the bytes begin as an RLP list and end where it says. Source: Ethereum yellow paper, appendix B. */
function isRlpList(bytes: Uint8Array): boolean {
  const head = bytes[0] ?? 0;
  if (head < 0xc0) return false;
  if (head < 0xf8) return bytes.length === 1 + head - 0xc0;
  // 0xf7 + size of the length || length, big-endian || items
  const sizeBytes = head - 0xf7;
  const size = bytes.subarray(1, 1 + sizeBytes).reduce((sum, byte) => sum * 256 + byte, 0);
  return bytes.length === 1 + sizeBytes + size;
}
