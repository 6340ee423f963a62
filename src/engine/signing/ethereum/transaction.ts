import type * as Authorization from 'ox/Authorization';
import * as Eip1559 from 'ox/TxEnvelopeEip1559';
import * as Eip2930 from 'ox/TxEnvelopeEip2930';
import * as Eip7702 from 'ox/TxEnvelopeEip7702';
import * as Legacy from 'ox/TxEnvelopeLegacy';
import { parseEvmAddress, parseHexText, parseQuantity, type Quantity } from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';

/** A signed EIP-7702 authorization with the field names of the API. */
export interface SignedAuthorization {
  readonly contract: string;
  readonly chain_id: Quantity;
  readonly nonce: Quantity;
  readonly r: string;
  readonly s: string;
  readonly y_parity: 0 | 1;
}

/** An unsigned transaction of type 0, 1, 2 or 4 with the field names of the API. */
export interface StandardTransaction {
  readonly type?: number | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly chain_id?: Quantity | undefined;
  readonly nonce?: Quantity | undefined;
  readonly data?: string | undefined;
  readonly value?: Quantity | undefined;
  readonly gas_limit?: Quantity | undefined;
  readonly gas_price?: Quantity | undefined;
  readonly max_fee_per_gas?: Quantity | undefined;
  readonly max_priority_fee_per_gas?: Quantity | undefined;
  readonly authorization_list?: readonly SignedAuthorization[] | undefined;
}

interface EnvelopeSignature {
  readonly r: `0x${string}`;
  readonly s: `0x${string}`;
  readonly yParity: number;
}

/** A validated transaction. It is encoded to 0x hex on demand. */
export interface PreparedTransaction {
  signingBytes(): `0x${string}`;
  /** Returns the wire bytes. Without a signature, they serve only for policy evaluation. */
  wireBytes(signature?: EnvelopeSignature): `0x${string}`;
}

type FeeField = 'gas_price' | 'max_fee_per_gas' | 'max_priority_fee_per_gas' | 'authorization_list';

const FIELDS_OF_TYPE: Readonly<Record<0 | 1 | 2 | 4, readonly FeeField[]>> = {
  0: ['gas_price'],
  1: ['gas_price'],
  2: ['max_fee_per_gas', 'max_priority_fee_per_gas'],
  4: ['max_fee_per_gas', 'max_priority_fee_per_gas', 'authorization_list'],
};
const ALL_FEE_FIELDS = Object.keys({
  gas_price: 0,
  max_fee_per_gas: 0,
  max_priority_fee_per_gas: 0,
  authorization_list: 0,
}) as readonly FeeField[];

// The largest chain id whose EIP-155 `v` (2 * id + 36) is a safe integer.
const MAX_CHAIN_ID = Math.floor((Number.MAX_SAFE_INTEGER - 36) / 2);

/**
 * Validates a transaction and determines its type. Missing numbers become 0, and missing `data` and `to` become
 * empty. Makes no calls to a chain.
 *
 * @throws InvalidTransactionError or InvalidFieldError with pointers below `/transaction`.
 */
export function prepareTransaction(transaction: StandardTransaction): PreparedTransaction {
  const type = typeOf(transaction);
  assertFieldsFit(transaction, type);
  const common = readCommonFields(transaction);
  if (type === 0) {
    const chainId = transaction.chain_id === undefined ? undefined : readChainId(transaction.chain_id);
    const envelope = {
      ...common,
      ...(chainId === undefined ? {} : { chainId }),
      gasPrice: readWei(transaction, 'gas_price'),
    };
    return prepared((signature) => Legacy.serialize(envelope, signature && { signature }));
  }
  if (transaction.chain_id === undefined) {
    throw new InvalidTransactionError('/transaction/chain_id', `expected a chain id for type ${type}`);
  }
  const chainId = readChainId(transaction.chain_id);
  if (type === 1) {
    const envelope = { ...common, chainId, gasPrice: readWei(transaction, 'gas_price') };
    return prepared((signature) => Eip2930.serialize(envelope, signature && { signature }));
  }
  const dynamic = { ...common, chainId, ...readDynamicFees(transaction) };
  if (type === 2) return prepared((signature) => Eip1559.serialize(dynamic, signature && { signature }));
  const envelope = { ...dynamic, authorizationList: readAuthorizations(transaction) };
  return prepared((signature) => Eip7702.serialize(envelope, signature && { signature }));
}

// The standard types sign the serialization without signature fields.
function prepared(encode: PreparedTransaction['wireBytes']): PreparedTransaction {
  return { signingBytes: () => encode(), wireBytes: encode };
}

// Returns the type of a transaction. CHOICE: the default is 2, unless the transaction has a field that only another
// type has.
function typeOf(transaction: StandardTransaction): 0 | 1 | 2 | 4 {
  const { type } = transaction;
  if (type === 0 || type === 1 || type === 2 || type === 4) return type;
  if (type !== undefined)
    throw new InvalidTransactionError('/transaction/type', `expected 0, 1, 2, 4 or 118, got \`${type}\``);
  if (transaction.authorization_list !== undefined) return 4;
  return transaction.gas_price === undefined ? 2 : 0;
}

function assertFieldsFit(transaction: StandardTransaction, type: 0 | 1 | 2 | 4): void {
  for (const field of ALL_FEE_FIELDS) {
    if (transaction[field] !== undefined && !FIELDS_OF_TYPE[type].includes(field)) {
      throw new InvalidTransactionError(
        `/transaction/${field}`,
        `expected no \`${field}\` in a transaction of type ${type}`,
      );
    }
  }
}

function readCommonFields(transaction: StandardTransaction) {
  const { to, data } = transaction;
  return {
    ...(to === undefined ? {} : { to: parseEvmAddress(to, '/transaction/to') }),
    ...(data === undefined ? {} : { data: parseHexText(data, '/transaction/data') }),
    value: readNumber(transaction.value, '/transaction/value', 256),
    // EIP-2681 limits nonces to 64 bits; nodes limit gas in the same way.
    nonce: readNumber(transaction.nonce, '/transaction/nonce', 64),
    gas: readNumber(transaction.gas_limit, '/transaction/gas_limit', 64),
  };
}

function readDynamicFees(transaction: StandardTransaction) {
  const maxFeePerGas = readWei(transaction, 'max_fee_per_gas');
  const maxPriorityFeePerGas = readWei(transaction, 'max_priority_fee_per_gas');
  if (transaction.max_fee_per_gas !== undefined && maxPriorityFeePerGas > maxFeePerGas) {
    throw new InvalidTransactionError(
      '/transaction/max_priority_fee_per_gas',
      'expected at most `max_fee_per_gas`',
    );
  }
  return { maxFeePerGas, maxPriorityFeePerGas };
}

function readAuthorizations(transaction: StandardTransaction): Authorization.List<true> {
  const list = transaction.authorization_list ?? [];
  // EIP-7702: a transaction with an empty list or without a destination is invalid.
  if (list.length === 0) {
    throw new InvalidTransactionError(
      '/transaction/authorization_list',
      'expected at least one authorization',
    );
  }
  if (transaction.to === undefined) {
    throw new InvalidTransactionError('/transaction/to', 'expected a destination for type 4');
  }
  return list.map((entry, index) => readAuthorization(entry, `/transaction/authorization_list/${index}`));
}

function readAuthorization(entry: SignedAuthorization, at: string): Authorization.Authorization<true> {
  return {
    address: parseEvmAddress(entry.contract, `${at}/contract`),
    chainId: Number(parseQuantity(entry.chain_id, `${at}/chain_id`, 52)),
    nonce: parseQuantity(entry.nonce, `${at}/nonce`, 64),
    r: wordHex(entry.r, `${at}/r`),
    s: wordHex(entry.s, `${at}/s`),
    yParity: entry.y_parity,
  };
}

/** Parses a 0x hex number and pads it to 32 bytes. */
export function wordHex(value: string, field: string): `0x${string}` {
  return `0x${parseQuantity(value, field, 256).toString(16).padStart(64, '0')}`;
}

/** Parses a chain id from 1 to MAX_CHAIN_ID. */
export function readChainId(value: Quantity): number {
  const chainId = parseQuantity(value, '/transaction/chain_id', 52);
  if (chainId < 1n || chainId > BigInt(MAX_CHAIN_ID)) {
    throw new InvalidTransactionError(
      '/transaction/chain_id',
      `expected a chain id from 1 to ${MAX_CHAIN_ID}, got \`${value}\``,
    );
  }
  return Number(chainId);
}

function readWei(transaction: StandardTransaction, field: Exclude<FeeField, 'authorization_list'>): bigint {
  return readNumber(transaction[field], `/transaction/${field}`, 256);
}

/** Parses a quantity. A missing quantity is 0, as in the encodings. */
export function readNumber(value: Quantity | undefined, field: string, bits: number): bigint {
  return value === undefined ? 0n : parseQuantity(value, field, bits);
}

/** A decoded EVM transaction. Addresses and data are lower-case 0x hex, amounts wei. */
export interface EthereumTransactionView {
  readonly type: 0 | 1 | 2 | 4 | 118;
  /** Undefined for a legacy transaction that is valid on every chain. */
  readonly chainId: number | undefined;
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  readonly gasPrice: bigint | undefined;
  readonly maxFeePerGas: bigint | undefined;
  readonly maxPriorityFeePerGas: bigint | undefined;
  /** One call, or several in a Tempo batch. `to` is undefined for a contract creation. */
  readonly calls: readonly {
    readonly to: string | undefined;
    readonly value: bigint;
    readonly data: string;
  }[];
  readonly authorizations: readonly {
    readonly contract: string;
    readonly chainId: number;
    readonly nonce: bigint;
    /** The authority's signature as 0x hex of r || s || parity, or the bytes of a Tempo signature. */
    readonly signature: string;
  }[];
  readonly accessList: readonly { readonly address: string; readonly storageKeys: readonly string[] }[];
  /** 0x hex of r || s || parity, or the bytes of a Tempo signature; undefined while unsigned. */
  readonly signature: string | undefined;
  readonly tempo:
    | {
        readonly feeToken: string | undefined;
        readonly isFeePayerSigned: boolean;
        /** 0x hex of r || s || parity. */
        readonly feePayerSignature: string | undefined;
        readonly nonceKey: bigint;
        /** Unix seconds. */
        readonly validAfter: number | undefined;
        /** Unix seconds. */
        readonly validBefore: number | undefined;
        readonly accessListLength: number;
      }
    | undefined;
}
