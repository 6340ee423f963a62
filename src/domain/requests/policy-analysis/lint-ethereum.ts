import { keccak_256 } from '@noble/hashes/sha3.js';
import { decimalText } from '../../../engine/assets/decimal.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import { bytesTo0xHex, concatBytes, utf8ToBytes } from '../../../engine/crypto/encoding.ts';
import type { ConditionInput } from '../../../engine/policy/condition-source.ts';
import { smartAccountTypes } from '../../../engine/policy/strict-methods.ts';
import { encodeAuthorization } from '../../../engine/signing/ethereum/authorization.ts';
import { hashPersonalMessage } from '../../../engine/signing/ethereum/signer.ts';
import { hashTypedData, type TypedData } from '../../../engine/signing/ethereum/typed-data.ts';
import {
  callRequests,
  disguisedOperations,
  type EthereumCall,
  hashRequests,
  isEvmAddress,
  SENDER,
  STRANGER,
  signedBytesOf,
} from './lint-ethereum-calls.ts';
import { paymentGrants, tokenEffects, tokenTransfers } from './lint-ethereum-grants.ts';
import {
  boundaryNumbers,
  bytesRequest,
  distinct,
  type Effect,
  type LintSubject,
  MAX_RECEIVERS,
  namedValues,
  rpc,
  type TriedRequest,
  transferRequest,
} from './lint-requests.ts';

const MAX_MESSAGES = 6;
const MAX_CONTRACTS = 3;
const MAX_LENGTH = 4_096;

/**
 * Yields the effects of messages that are signed without a transaction. Each message can also be signed as its hash or
 * as its bytes.
 */
function* messageEffects(conditions: readonly ConditionInput[]): Generator<Effect> {
  for (const text of messagesFor(conditions)) yield messageEffect(text);
  for (const typedData of typedDataFor(conditions)) {
    const hash = hashTypedData(typedData);
    yield {
      calls: [rpc('eth_signTypedData_v4', { params: { typed_data: typedData } })],
      others: [
        {
          kind: 'hash_signing',
          of: 'eth_signTypedData_v4',
          requests: [...hashRequests(hash), ...smartAccountRequests(hash)],
        },
      ],
    };
  }
  const contracts = namedValues(
    conditions,
    ({ field_source: source }) => source === 'ethereum_7702_authorization',
  ).filter(isEvmAddress);
  for (const contract of distinct([STRANGER, ...contracts], MAX_CONTRACTS)) {
    yield authorizationEffect(contract);
  }
}

function messagesFor(conditions: readonly ConditionInput[]): readonly string[] {
  const named = (field: string) =>
    namedValues(conditions, (each) => each.field_source === 'message' && each.field === field);
  const lengths = named('byte_length')
    .map(Number)
    .flatMap((length) => [length + 1, length])
    .filter((length) => length <= MAX_LENGTH);
  const texts = named('content').filter((text) => text.length > 0);
  return distinct(['hello', ...texts, ...lengths.map((length) => 'x'.repeat(length))], MAX_MESSAGES);
}

function messageEffect(message: string): Effect {
  const bytes = utf8ToBytes(message);
  // 0x19 || "Ethereum Signed Message:\n" || decimal length || message
  const head = utf8ToBytes(`\x19Ethereum Signed Message:\n${bytes.length}`);
  const of = 'personal_sign';
  return {
    calls: [rpc(of, { params: { message, encoding: 'utf-8' } })],
    others: [
      { kind: 'hash_signing', of, requests: hashRequests(hashPersonalMessage(bytes)) },
      { kind: 'raw_signing', of, requests: [bytesRequest(concatBytes(head, bytes), 'keccak256')] },
    ],
  };
}

/** Returns typed data with which smart accounts of the wallet verify the message with this hash. */
function smartAccountRequests(hash: Uint8Array): readonly TriedRequest[] {
  return Object.entries(smartAccountTypes).map(([primaryType, member]) => {
    const typedData = {
      domain: { name: 'Example', version: '1', chainId: 1, verifyingContract: STRANGER },
      types: { [primaryType]: [member] },
      primary_type: primaryType,
      message: { [member.name]: bytesTo0xHex(hash) },
    };
    return rpc('eth_signTypedData_v4', { params: { typed_data: typedData } });
  });
}

function authorizationEffect(contract: string): Effect {
  const of = 'eth_sign7702Authorization';
  const params = { contract, chain_id: 1, nonce: 0 };
  const bytes = encodeAuthorization(params);
  return {
    calls: [rpc(of, { params })],
    others: [
      { kind: 'hash_signing', of, requests: hashRequests(keccak_256(bytes)) },
      { kind: 'raw_signing', of, requests: [bytesRequest(bytes, 'keccak256')] },
    ],
  };
}

/** Returns typed data of the types that conditions declare: once with each named value, and once with another value. */
function typedDataFor(conditions: readonly ConditionInput[]): readonly TypedData[] {
  return conditions.flatMap(({ field_source: source, field, typed_data: declared, value }) => {
    if (source !== 'ethereum_typed_data_message' || declared === undefined) return [];
    const { types, primary_type: primaryType } = declared;
    const named = [value].flat()[0] ?? '';
    return [named, undefined].flatMap((given) => {
      const message = messageOf(types, primaryType, { path: field.split('.'), given });
      const typedData = {
        domain: { name: 'Example', version: '1', chainId: 1, verifyingContract: STRANGER },
        types,
        primary_type: primaryType,
        message,
      };
      return isSignable(typedData) ? [typedData] : [];
    });
  });
}

function isSignable(typedData: TypedData): boolean {
  try {
    hashTypedData(typedData);
    return true;
  } catch {
    return false;
  }
}

type Types = NonNullable<ConditionInput['typed_data']>['types'];

/** Returns a message in which every field has the smallest value of its type, except the given field. */
function messageOf(
  types: Types,
  type: string,
  field: { readonly path: readonly string[]; readonly given: string | undefined },
): Record<string, unknown> {
  const [own, ...rest] = field.path;
  return Object.fromEntries(
    (types[type] ?? []).map(({ name, type: memberType }) => {
      const isMeant = name === own && field.given !== undefined;
      if (Object.hasOwn(types, memberType)) {
        const inner = isMeant ? { ...field, path: rest } : { path: [], given: undefined };
        return [name, messageOf(types, memberType, inner)];
      }
      return [name, isMeant && rest.length === 0 ? field.given : smallestOf(memberType)];
    }),
  );
}

function smallestOf(type: string): unknown {
  if (type.endsWith(']')) return [];
  if (type === 'address') return STRANGER;
  if (type === 'bool') return false;
  if (type === 'string') return '';
  if (type.startsWith('bytes')) return bytesTo0xHex(new Uint8Array(Number(type.slice('bytes'.length))));
  return '0';
}

const MAX_CHAINS = 3;
/** The id of a chain that accepts typed data as transactions. */
const ZKSYNC_ERA = 324;

/**
 * Yields payments with the receivers, values and chains that the conditions name, and with other values. Effects of
 * tokens and messages follow.
 */
export async function* ethereumEffects(subject: LintSubject): AsyncGenerator<Effect> {
  const { conditions, sender = SENDER } = subject;
  const named = (field: string): string[] =>
    namedValues(conditions, (each) => each.field_source === 'ethereum_transaction' && each.field === field);
  const transfers = namedValues(conditions, ({ field }) => field === 'destination.address');
  const receivers = [...named('to'), ...transfers].filter(isEvmAddress);
  const chains = distinct([1, ...named('chain_id').map(Number).filter(Number.isSafeInteger), 10], MAX_CHAINS);
  for (const to of distinct([STRANGER, ...receivers], MAX_RECEIVERS)) {
    for (const value of boundaryNumbers(named('value'), 2n ** 256n)) {
      for (const chainId of new Set([...chains, ZKSYNC_ERA])) {
        if (chainId > 0) yield await paymentEffect({ to, value, chainId, sender });
      }
    }
  }
  const [chainId = 1] = chains.filter((id) => id > 0);
  yield* tokenEffects({ ...subject, chainId, receivers: [STRANGER, ...receivers], sender });
  yield* messageEffects(conditions);
}

async function paymentEffect(call: EthereumCall): Promise<Effect> {
  const signed = await signedBytesOf(call);
  return {
    calls: [...callRequests(call), ...transferOf(call)],
    others: [
      { kind: 'hash_signing', of: 'eth_signTransaction', requests: hashRequests(keccak_256(signed)) },
      { kind: 'raw_signing', of: 'eth_signTransaction', requests: [bytesRequest(signed, 'keccak256')] },
      { kind: 'user_operation_hash', of: 'eth_signUserOperation', requests: disguisedOperations(call) },
      ...paymentGrants(call).map((grant) => ({ kind: 'sibling_call' as const, ...grant })),
      ...tokenTransfers(call),
    ],
  };
}

/**
 * Returns a request that makes the same payment as a transfer; empty for an amount of zero, or if the chain or its
 * asset has no name in the API.
 */
function transferOf({ to, value, chainId }: EthereumCall): readonly TriedRequest[] {
  const chain = chainOfCaip2(`eip155:${chainId}`);
  if (chain?.native === undefined || value === 0n) return [];
  const amount = decimalText({ digits: value, scale: chain.native.decimals });
  const source = { asset: chain.native.asset, amount, chain: chain.name };
  return [transferRequest({ source, destination: { address: to } })];
}
