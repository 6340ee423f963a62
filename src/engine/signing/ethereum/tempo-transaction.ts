import * as SignatureEnvelope from 'ox/tempo/SignatureEnvelope';
import * as Tempo from 'ox/tempo/TxEnvelopeTempo';
import {
  parseEvmAddress,
  parseHexBytes,
  parseHexText,
  parseQuantity,
  parseSafeInteger,
  type Quantity,
} from '../fields.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { signatureHex } from './signer.ts';
import {
  type EthereumTransactionView,
  type PreparedTransaction,
  readChainId,
  readNumber,
  wordHex,
} from './transaction.ts';

/** A Tempo transaction (type 118, 0x76) with the field names of the API. */
export interface TempoTransaction {
  readonly type: 118;
  readonly calls: readonly {
    readonly to: string;
    readonly data?: string | undefined;
    readonly value?: Quantity | undefined;
  }[];
  readonly from?: string | undefined;
  readonly chain_id?: Quantity | undefined;
  readonly nonce?: Quantity | undefined;
  /** The lane of Tempo's two-dimensional nonce, 192 bits. */
  readonly nonce_key?: Quantity | undefined;
  readonly gas_limit?: Quantity | undefined;
  readonly max_fee_per_gas?: Quantity | undefined;
  readonly max_priority_fee_per_gas?: Quantity | undefined;
  readonly fee_token?: string | undefined;
  readonly fee_payer_signature?:
    | { readonly r: string; readonly s: string; readonly y_parity: 0 | 1 }
    | undefined;
  /** Unix seconds. */
  readonly valid_before?: Quantity | undefined;
  /** Unix seconds. */
  readonly valid_after?: Quantity | undefined;
  readonly access_list?:
    | readonly { readonly address: string; readonly storage_keys: readonly string[] }[]
    | undefined;
  readonly aa_authorization_list?: readonly TempoAuthorization[] | undefined;
}

interface TempoAuthorization {
  readonly contract: string;
  readonly chain_id: Quantity;
  readonly nonce: Quantity;
  readonly signature: string;
}

/**
 * Validates a Tempo transaction without filling in defaults. With a fee payer signature, the sender's signed bytes
 * omit the fee token and contain a fee payer marker, as the chain requires. Source: Tempo transaction specification,
 * type 0x76.
 *
 * @throws InvalidTransactionError, InvalidFieldError
 */
export function prepareTempoTransaction(transaction: TempoTransaction): PreparedTransaction {
  if (transaction.chain_id === undefined) {
    throw new InvalidTransactionError('/transaction/chain_id', 'expected a chain id for type 118');
  }
  if (transaction.calls.length === 0) {
    throw new InvalidTransactionError('/transaction/calls', 'expected at least one call');
  }
  const envelope = {
    type: 'tempo' as const,
    chainId: readChainId(transaction.chain_id),
    calls: transaction.calls.map((call, index) => readCall(call, `/transaction/calls/${index}`)),
    nonce: readNumber(transaction.nonce, '/transaction/nonce', 64),
    nonceKey: readNumber(transaction.nonce_key, '/transaction/nonce_key', 192),
    gas: readNumber(transaction.gas_limit, '/transaction/gas_limit', 64),
    ...readFees(transaction),
    ...readWindow(transaction),
    ...readLists(transaction),
  };
  return {
    signingBytes: () => Tempo.encodeForSigning(envelope),
    wireBytes: (signature) =>
      Tempo.serialize(envelope, signature && { signature: SignatureEnvelope.from(signature) }),
  };
}

/**
 * Decodes wire bytes into the form that policies evaluate.
 *
 * @throws InvalidTransactionError
 */
export function decodeTempoTransaction(hex: `0x${string}`): EthereumTransactionView {
  try {
    const envelope = Tempo.deserialize(hex as Tempo.Serialized);
    // Key authorizations are rejected, because they would give another key control of the account, and the API has no
    // field for them.
    if (envelope.keyAuthorization === undefined && Tempo.serialize(envelope) === hex) return toView(envelope);
  } catch {
    // The error below rejects the bytes.
  }
  throw new InvalidTransactionError('', 'expected a serialized Tempo transaction in canonical encoding');
}

function toView(envelope: Tempo.TxEnvelopeTempo): EthereumTransactionView {
  return {
    type: 118,
    chainId: envelope.chainId,
    nonce: envelope.nonce ?? 0n,
    gasLimit: envelope.gas ?? 0n,
    gasPrice: undefined,
    maxFeePerGas: envelope.maxFeePerGas,
    maxPriorityFeePerGas: envelope.maxPriorityFeePerGas,
    calls: envelope.calls.map(({ to, value, data }) => ({ to, value: value ?? 0n, data: data ?? '0x' })),
    authorizations: (envelope.authorizationList ?? []).map(({ address, chainId, nonce, signature }) => ({
      contract: address,
      chainId,
      nonce,
      signature: SignatureEnvelope.serialize(signature),
    })),
    accessList: envelope.accessList ?? [],
    signature: envelope.signature && SignatureEnvelope.serialize(envelope.signature),
    tempo: {
      feeToken: envelope.feeToken,
      isFeePayerSigned: envelope.feePayerSignature !== undefined && envelope.feePayerSignature !== null,
      feePayerSignature: envelope.feePayerSignature ? signatureHex(envelope.feePayerSignature) : undefined,
      nonceKey: envelope.nonceKey ?? 0n,
      validAfter: envelope.validAfter,
      validBefore: envelope.validBefore,
      accessListLength: envelope.accessList?.length ?? 0,
    },
  };
}

function readCall(call: TempoTransaction['calls'][number], at: string) {
  return {
    to: parseEvmAddress(call.to, `${at}/to`),
    value: readNumber(call.value, `${at}/value`, 256),
    ...(call.data === undefined ? {} : { data: parseHexText(call.data, `${at}/data`) }),
  };
}

function readFees(transaction: TempoTransaction) {
  const maxFeePerGas = readNumber(transaction.max_fee_per_gas, '/transaction/max_fee_per_gas', 256);
  const field = '/transaction/max_priority_fee_per_gas';
  const maxPriorityFeePerGas = readNumber(transaction.max_priority_fee_per_gas, field, 256);
  if (transaction.max_fee_per_gas !== undefined && maxPriorityFeePerGas > maxFeePerGas) {
    throw new InvalidTransactionError(field, 'expected at most `max_fee_per_gas`');
  }
  const { fee_token: feeToken, fee_payer_signature: feePayer } = transaction;
  return {
    maxFeePerGas,
    maxPriorityFeePerGas,
    ...(feeToken === undefined ? {} : { feeToken: parseEvmAddress(feeToken, '/transaction/fee_token') }),
    ...(feePayer === undefined
      ? {}
      : {
          feePayerSignature: {
            r: wordHex(feePayer.r, '/transaction/fee_payer_signature/r'),
            s: wordHex(feePayer.s, '/transaction/fee_payer_signature/s'),
            yParity: feePayer.y_parity,
          },
        }),
  };
}

function readWindow(transaction: TempoTransaction) {
  const { valid_after: after, valid_before: before } = transaction;
  const validAfter = after === undefined ? undefined : parseSafeInteger(after, '/transaction/valid_after');
  const validBefore =
    before === undefined ? undefined : parseSafeInteger(before, '/transaction/valid_before');
  if (validAfter !== undefined && validBefore !== undefined && validBefore <= validAfter) {
    throw new InvalidTransactionError('/transaction/valid_before', 'expected a time after `valid_after`');
  }
  return {
    ...(validAfter === undefined ? {} : { validAfter }),
    ...(validBefore === undefined ? {} : { validBefore }),
  };
}

function readLists(transaction: TempoTransaction) {
  const { access_list: accessList, aa_authorization_list: authorizationList } = transaction;
  return {
    ...(accessList === undefined
      ? {}
      : {
          accessList: accessList.map((entry, index) => ({
            address: parseEvmAddress(entry.address, `/transaction/access_list/${index}/address`),
            storageKeys: entry.storage_keys.map((key, keyIndex) => {
              const at = `/transaction/access_list/${index}/storage_keys/${keyIndex}`;
              parseHexBytes(key, at, 32);
              return parseHexText(key, at);
            }),
          })),
        }),
    ...(authorizationList === undefined
      ? {}
      : {
          authorizationList: authorizationList.map((entry, index) =>
            readAuthorization(entry, `/transaction/aa_authorization_list/${index}`),
          ),
        }),
  };
}

function readAuthorization(entry: TempoAuthorization, at: string) {
  return {
    address: parseEvmAddress(entry.contract, `${at}/contract`),
    chainId: Number(parseQuantity(entry.chain_id, `${at}/chain_id`, 52)),
    nonce: parseQuantity(entry.nonce, `${at}/nonce`, 64),
    signature: readSignature(entry.signature, `${at}/signature`),
  };
}

// Rejects a signature that is not in its canonical encoding, because the wallet would sign other bytes than the given
// ones.
function readSignature(value: string, field: string) {
  const hex = parseHexText(value, field);
  try {
    const signature = SignatureEnvelope.deserialize(hex);
    if (SignatureEnvelope.serialize(signature) === hex) return signature;
  } catch {
    // The error below rejects the value.
  }
  throw new InvalidTransactionError(field, 'expected an encoded Tempo signature');
}

/**
 * Returns the signer of a Tempo transaction.
 *
 * @param recover returns the signer of a 32-byte payload for r || s || parity.
 * @throws InvalidTransactionError if the signature is not a secp256k1 signature.
 */
export function recoverTempoSender(
  hex: `0x${string}`,
  recover: (payload: `0x${string}`, signature: string | undefined) => string,
): string {
  const envelope = Tempo.deserialize(hex as Tempo.Serialized);
  const { signature } = envelope;
  const flat = signature?.type === 'secp256k1' ? signatureHex(signature.signature) : undefined;
  return recover(Tempo.getSignPayload(envelope), flat);
}

/** Returns the digest that a fee payer signs for the sender's transaction, 32 bytes as 0x hex. */
export function feePayerPayload(hex: `0x${string}`, sender: string): `0x${string}` {
  const envelope = Tempo.deserialize(hex as Tempo.Serialized);
  return Tempo.getFeePayerSignPayload(envelope, { sender: sender as `0x${string}` });
}
