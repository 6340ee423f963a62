import { InvalidBytesError } from '../../crypto/byte-reader.ts';
import {
  bytesToHex,
  bytesToUtf8,
  concatBytes,
  equalBytes,
  looseHexToBytes,
  utf8ToBytes,
} from '../../crypto/encoding.ts';
import { decodeField } from '../fields.ts';
import { InvalidFieldError, InvalidTransactionError } from '../signing-errors.ts';
import { bytesField, int64Field, type ProtobufField, readProtobuf } from './protobuf.ts';

/**
 * The raw data of a TRON transaction, with the field names of the API. Addresses: `41` + 40 hex digits; amounts: sun.
 */
export interface TronRawData {
  readonly contract: readonly TronContract[];
  /** 2 bytes of hex. */
  readonly ref_block_bytes: string;
  /** 8 bytes of hex. */
  readonly ref_block_hash: string;
  /** Unix ms. */
  readonly expiration: number;
  /** Unix ms. */
  readonly timestamp?: number | undefined;
  /** Sun. */
  readonly fee_limit?: number | undefined;
  /** Memo, hex. */
  readonly data?: string | undefined;
}

export type TronContract = TronTransfer | TronTrigger;

interface OfAnyContract {
  /**
   * Selects the owner's permission under which the key signs. 0, the default, is the owner's own permission. The API
   * has no such field.
   */
  readonly permission_id?: number | undefined;
}

export interface TronTransfer extends OfAnyContract {
  readonly type: 'TransferContract';
  readonly owner_address: string;
  readonly to_address: string;
  readonly amount: number;
}

export interface TronTrigger extends OfAnyContract {
  readonly type: 'TriggerSmartContract';
  readonly owner_address: string;
  readonly contract_address: string;
  /** Selector and arguments, hex. */
  readonly data?: string | undefined;
  readonly call_value?: number | undefined;
  readonly call_token_value?: number | undefined;
  readonly token_id?: number | undefined;
}

/**
 * TRON's enum ContractType. Each name is also the end of a type URL, after `type.googleapis.com/protocol.`. Only two
 * of these types can be encoded.
 */
export const tronContractTypes = {
  AccountCreateContract: 0n,
  TransferContract: 1n,
  TransferAssetContract: 2n,
  VoteAssetContract: 3n,
  VoteWitnessContract: 4n,
  WitnessCreateContract: 5n,
  AssetIssueContract: 6n,
  WitnessUpdateContract: 8n,
  ParticipateAssetIssueContract: 9n,
  AccountUpdateContract: 10n,
  FreezeBalanceContract: 11n,
  UnfreezeBalanceContract: 12n,
  WithdrawBalanceContract: 13n,
  UnfreezeAssetContract: 14n,
  UpdateAssetContract: 15n,
  ProposalCreateContract: 16n,
  ProposalApproveContract: 17n,
  ProposalDeleteContract: 18n,
  SetAccountIdContract: 19n,
  CustomContract: 20n,
  CreateSmartContract: 30n,
  TriggerSmartContract: 31n,
  GetContract: 32n,
  UpdateSettingContract: 33n,
  ExchangeCreateContract: 41n,
  ExchangeInjectContract: 42n,
  ExchangeWithdrawContract: 43n,
  ExchangeTransactionContract: 44n,
  UpdateEnergyLimitContract: 45n,
  AccountPermissionUpdateContract: 46n,
  ClearABIContract: 48n,
  UpdateBrokerageContract: 49n,
  ShieldedTransferContract: 51n,
  MarketSellAssetContract: 52n,
  MarketCancelOrderContract: 53n,
  FreezeBalanceV2Contract: 54n,
  UnfreezeBalanceV2Contract: 55n,
  WithdrawExpireUnfreezeContract: 56n,
  DelegateResourceContract: 57n,
  UnDelegateResourceContract: 58n,
  CancelAllUnfreezeV2Contract: 59n,
} as const;
const TYPE_URL = 'type.googleapis.com/protocol.';
const HEX_ADDRESS = /^41[0-9a-fA-F]{40}$/;

/**
 * Encodes a transaction's raw data as canonical protobuf, the bytes that are hashed and signed. Source: TRON
 * protocol, core/Tron.proto, `Transaction.raw`.
 *
 * @throws InvalidFieldError, InvalidTransactionError with pointers below `/raw_data`.
 */
export function encodeTronRawData(rawData: TronRawData): Uint8Array {
  const [contract] = rawData.contract;
  if (contract === undefined || rawData.contract.length !== 1) {
    throw new InvalidTransactionError(
      '/raw_data/contract',
      `expected one contract, got ${rawData.contract.length}`,
    );
  }
  return concatBytes(
    bytesField(1, hexField(rawData.ref_block_bytes, '/raw_data/ref_block_bytes', 2)),
    bytesField(4, hexField(rawData.ref_block_hash, '/raw_data/ref_block_hash', 8)),
    int64Field(8, amount(rawData.expiration, '/raw_data/expiration')),
    bytesField(10, hexField(rawData.data, '/raw_data/data')),
    bytesField(11, encodeContract(contract, '/raw_data/contract/0')),
    int64Field(14, amount(rawData.timestamp, '/raw_data/timestamp')),
    int64Field(18, amount(rawData.fee_limit, '/raw_data/fee_limit')),
  );
}

// Contract { type 1, parameter 2: Any { type_url 1, value 2 }, permission id 5 }
function encodeContract(contract: TronContract, at: string): Uint8Array {
  const value =
    contract.type === 'TransferContract' ? encodeTransfer(contract, at) : encodeTrigger(contract, at);
  const any = concatBytes(bytesField(1, utf8ToBytes(TYPE_URL + contract.type)), bytesField(2, value));
  return concatBytes(
    int64Field(1, tronContractTypes[contract.type]),
    bytesField(2, any),
    int64Field(5, amount(contract.permission_id, `${at}/permission_id`)),
  );
}

function encodeTransfer(contract: TronTransfer, at: string): Uint8Array {
  return concatBytes(
    bytesField(1, address(contract.owner_address, `${at}/owner_address`)),
    bytesField(2, address(contract.to_address, `${at}/to_address`)),
    int64Field(3, amount(contract.amount, `${at}/amount`)),
  );
}

function encodeTrigger(contract: TronTrigger, at: string): Uint8Array {
  return concatBytes(
    bytesField(1, address(contract.owner_address, `${at}/owner_address`)),
    bytesField(2, address(contract.contract_address, `${at}/contract_address`)),
    int64Field(3, amount(contract.call_value, `${at}/call_value`)),
    bytesField(4, hexField(contract.data, `${at}/data`)),
    int64Field(5, amount(contract.call_token_value, `${at}/call_token_value`)),
    int64Field(6, amount(contract.token_id, `${at}/token_id`)),
  );
}

function address(value: string, field: string): Uint8Array {
  if (!HEX_ADDRESS.test(value))
    throw new InvalidFieldError(field, `expected 41 and 40 hex digits, got \`${value}\``);
  return looseHexToBytes(value);
}

function hexField(value: string | undefined, field: string, size?: number): Uint8Array {
  const bytes = decodeField(field, () => looseHexToBytes(value ?? ''));
  if (size !== undefined && bytes.length !== size) {
    throw new InvalidFieldError(field, `expected ${size} bytes of hex, got ${bytes.length}`);
  }
  return bytes;
}

function amount(value: number | undefined, field: string): bigint {
  if (value === undefined) return 0n;
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new InvalidFieldError(field, `expected an integer from 0 to 2^53 - 1, got \`${value}\``);
  }
  return BigInt(value);
}

/**
 * Decodes raw data into the form that policies evaluate. Returns undefined if the bytes are not a transaction.
 *
 * @throws InvalidTransactionError for a transaction with another contract type, which the message names, with unknown
 * fields, or in a non-canonical encoding.
 */
export function decodeTronRawData(bytes: Uint8Array): TronRawData | undefined {
  const fields = readFields(bytes);
  if (fields === undefined || !fields.some((field) => field.number === 11 && 'bytes' in field))
    return undefined;
  try {
    const rawData = toRawData(fields);
    if (equalBytes(encodeTronRawData(rawData), bytes)) return rawData;
  } catch (error) {
    if (!(error instanceof InvalidBytesError || error instanceof InvalidFieldError)) throw error;
  }
  throw new InvalidTransactionError('', `expected one TRON transfer or contract call, got ${kindOf(fields)}`);
}

/** Describes a transaction that rules cannot read, by the types of its contracts. */
function kindOf(fields: readonly ProtobufField[]): string {
  const contracts = fields.flatMap((field) => (field.number === 11 && 'bytes' in field ? [field.bytes] : []));
  const names = [...new Set(contracts.map((bytes) => typeOf(readFields(bytes) ?? [])))];
  const isRead = names.every((name) => name === 'TransferContract' || name === 'TriggerSmartContract');
  const listed = names.slice(0, MAX_NAMED).join(', ');
  return isRead ? `${listed} with other fields or in another encoding` : listed;
}

const MAX_NAMED = 3;

function typeOf(contract: readonly ProtobufField[]): string {
  const type = contract.findLast((field) => field.number === 1 && 'varint' in field) as
    | { varint: bigint }
    | undefined;
  const number = type?.varint ?? 0n;
  const found = Object.entries(tronContractTypes).find(([, known]) => known === number);
  return found?.[0] ?? `type ${number}`;
}

function readFields(bytes: Uint8Array): readonly ProtobufField[] | undefined {
  try {
    return readProtobuf(bytes);
  } catch {
    return undefined;
  }
}

function toRawData(fields: readonly ProtobufField[]): TronRawData {
  const message = indexFields(fields);
  return {
    contract: [toContract(message.bytes(11))],
    ref_block_bytes: bytesToHex(message.bytes(1)),
    ref_block_hash: bytesToHex(message.bytes(4)),
    expiration: message.integer(8),
    timestamp: message.integer(14),
    fee_limit: message.integer(18),
    data: bytesToHex(message.bytes(10)),
  };
}

function toContract(bytes: Uint8Array): TronContract {
  const contract = indexFields(readProtobuf(bytes));
  const any = indexFields(readProtobuf(contract.bytes(2)));
  const permission = contract.integer(5);
  const signed = permission === 0 ? {} : { permission_id: permission };
  const type = (bytesToUtf8(any.bytes(1)) ?? '').slice(TYPE_URL.length);
  const value = indexFields(readProtobuf(any.bytes(2)));
  const owner_address = bytesToHex(value.bytes(1));
  if (type === 'TransferContract') {
    return {
      type,
      owner_address,
      to_address: bytesToHex(value.bytes(2)),
      amount: value.integer(3),
      ...signed,
    };
  }
  if (type === 'TriggerSmartContract') {
    return {
      type,
      owner_address,
      contract_address: bytesToHex(value.bytes(2)),
      call_value: value.integer(3),
      data: bytesToHex(value.bytes(4)),
      call_token_value: value.integer(5),
      token_id: value.integer(6),
      ...signed,
    };
  }
  throw new InvalidBytesError('expected a transfer or a contract call');
}

// Drops repeated and unknown fields. `decodeTronRawData` detects them, because re-encoding the result then yields
// other bytes.
function indexFields(fields: readonly ProtobufField[]) {
  const byNumber = new Map(fields.map((field) => [field.number, field]));
  return {
    bytes(number: number): Uint8Array {
      const field = byNumber.get(number);
      return field !== undefined && 'bytes' in field ? field.bytes : new Uint8Array();
    },
    integer(number: number): number {
      const field = byNumber.get(number);
      const value = field !== undefined && 'varint' in field ? field.varint : 0n;
      if (value > BigInt(Number.MAX_SAFE_INTEGER))
        throw new InvalidBytesError('expected an integer below 2^53');
      return Number(value);
    },
  };
}
