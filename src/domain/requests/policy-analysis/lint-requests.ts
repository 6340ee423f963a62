import { bytesTo0xHex } from '../../../crypto/encoding.ts';
import type { ConditionInput } from '../../../policy/source.ts';

/** A request to try under a policy. */
export interface TriedRequest {
  readonly operation: 'walletRpc' | 'rawSignWallet' | 'exportWallet' | 'transferFromWallet';
  /** The rule method, or the rpc method of a request without one. */
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** Conditions that only such requests meet; without them, a rule about it is one about its whole method. */
  readonly marks?: readonly ConditionInput[] | undefined;
  /** The token that it moves: a rule that names it is meant to allow it. */
  readonly token?: string | undefined;
}

export type OtherKind =
  | 'hash_signing'
  | 'raw_signing'
  | 'user_operation_hash'
  | 'sibling_call'
  | 'token_transfer';

/** Requests that do what a denied call does, in a way that the rules about the call do not cover. */
interface OtherWay {
  readonly kind: OtherKind;
  /** The method of the call. Default: any that a rule names. */
  readonly of?: string | undefined;
  readonly requests: readonly TriedRequest[];
}

/** Requests with one effect. */
export interface Effect {
  /** The methods whose rules are about it. */
  readonly calls: readonly TriedRequest[];
  readonly others: readonly OtherWay[];
}

/** What the requests to try are made of. */
export interface LintSubject {
  readonly conditions: readonly ConditionInput[];
  /** The address of the wallet; undefined: one of an example. */
  readonly sender: string | undefined;
}

/** A public key to encrypt an export to: the P-256 base point, as SubjectPublicKeyInfo. */
const RECIPIENT =
  'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==';
const hpke = { encryption_type: 'HPKE', recipient_public_key: RECIPIENT };

/** The export of a wallet's private key. */
export const keyExport: TriedRequest = {
  operation: 'exportWallet',
  method: 'exportPrivateKey',
  request: hpke,
};

/** The export of the phrase from which a wallet's key is derived. */
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

/** The raw signature of a 32-byte hash. @param method under which the chain type evaluates it. */
export function hashRequest(hash: Uint8Array, method = 'signRawMessageBytes'): TriedRequest {
  return { operation: 'rawSignWallet', method, request: { params: { hash: bytesTo0xHex(hash) } } };
}

/** The raw signature of bytes. @param method under which the chain type evaluates them. */
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

/** Values of conditions on a field, those of condition sets left out. */
export function namedValues(
  conditions: readonly ConditionInput[],
  isMeant: (condition: ConditionInput) => boolean,
): string[] {
  return conditions
    .filter((condition) => condition.operator !== 'in_condition_set' && isMeant(condition))
    .flatMap(({ value }) => value);
}

/** Numbers at the boundaries of conditions, below `limit`, and a small one. */
export function boundaryNumbers(values: readonly string[], limit: bigint): readonly bigint[] {
  const numbers = values.filter((value) => /^(?:0x[0-9a-f]+|\d+)$/i.test(value)).map(BigInt);
  const candidates = [1n, ...numbers.flatMap((each) => [each + 1n, each])];
  return distinct(candidates, MOST_VALUES).filter((value) => value >= 0n && value < limit);
}

/** How many values of each field are tried: their product bounds the work. */
const MOST_VALUES = 5;
export const MOST_RECEIVERS = 4;

export function distinct<T>(values: readonly T[], most: number): readonly T[] {
  return [...new Set(values)].slice(0, most);
}
