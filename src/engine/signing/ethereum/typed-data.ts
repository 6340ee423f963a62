import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { InvalidTypedDataError } from '../signing-errors.ts';
import { signDigestHex } from './signer.ts';
import {
  DOMAIN,
  deriveDomainFields,
  encodeElementaryValue,
  encodeType,
  escapePointer,
  type ParsedType,
  parseType,
  readStructs,
  type Structs,
  type TypedDataField,
} from './typed-data-types.ts';

/** EIP-712 typed data with the field names of the API. */
export interface TypedData {
  readonly domain: Readonly<Record<string, unknown>>;
  /** If it lacks `EIP712Domain`, the fields of that type are derived from the domain's keys. */
  readonly types: Readonly<Record<string, readonly TypedDataField[]>>;
  readonly primary_type: string;
  readonly message: Readonly<Record<string, unknown>>;
}

interface Member {
  readonly name: string;
  /** The member's name, escaped as a reference token of a JSON pointer. */
  readonly at: string;
  readonly declared: string;
  readonly type: ParsedType;
}

interface PreparedStruct {
  /** keccak256(encodeType(name)). */
  readonly typeHash: Uint8Array;
  readonly members: readonly Member[];
}

interface Encoder {
  /** The number of members that may still be hashed. */
  membersLeft: number;
  /** The work left until the next pause. */
  untilPause: number;
  readonly structs: Structs;
  readonly prepared: Map<string, PreparedStruct>;
}

/** Yields at pauses and returns the digest. */
type Steps = Generator<undefined, Uint8Array>;

// CHOICE: the maximum depth of a body. The number of values is limited only by the size of the body, because a Seaport
// order tree has thousands of values. The number of hashed members is limited, including the members of absent
// structs.
const MAX_DEPTH = 128;
/**
 * The maximum number of hashed members, each of which takes one word. The limit is needed because thousands of values
 * can each omit the thousands of members of their type.
 */
const MAX_MEMBERS = 1_000_000;
// The work between two pauses, about 10 ms. Each value and each block of a hash counts as 1.
const WORK_AT_ONCE = 2_000;
const BLOCK_BYTES = 136;
const BYTES_AT_ONCE = 1_000 * BLOCK_BYTES;
const WORD_BYTES = 32;
// A struct that is null or absent is encoded as zeros instead of its hash, as in V4 of eth-sig-util. This permits
// recursive types.
const NO_STRUCT = new Uint8Array(WORD_BYTES);

/**
 * Executes `eth_signTypedData_v4`: returns 0x hex of r || s || v (27/28). Source: EIP-712.
 *
 * @throws InvalidTypedDataError
 */
export async function signTypedData(
  secret: Uint8Array,
  params: { readonly typed_data: TypedData },
): Promise<`0x${string}`> {
  return signDigestHex(await digestOfRequest(params), secret);
}

/**
 * Returns the digest of a request's typed data. Hashes in slices, because the largest body with typed data takes up
 * to a second.
 *
 * @throws InvalidTypedDataError
 */
export async function digestOfRequest(params: { readonly typed_data: TypedData }): Promise<Uint8Array> {
  const steps = hashSteps(params.typed_data, '/typed_data');
  let step = steps.next();
  while (step.done !== true) {
    await new Promise((resolve) => setImmediate(resolve));
    step = steps.next();
  }
  return step.value;
}

/**
 * Returns the 32-byte EIP-712 digest. Every declared field must have a value of its type; a struct may be null or
 * absent. Domain keys outside the domain type are rejected, because the signature would not cover them.
 *
 * @param pointer prefix of the pointers in errors.
 * @throws InvalidTypedDataError
 */
export function hashTypedData(typedData: TypedData, pointer = ''): Uint8Array {
  const steps = hashSteps(typedData, pointer);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

function* hashSteps(typedData: TypedData, pointer: string): Steps {
  const { domain, message, primary_type: primaryType } = typedData;
  const structs = readTypes(typedData, pointer);
  if (!structs.has(primaryType)) {
    throw new InvalidTypedDataError(
      `${pointer}/primary_type`,
      `expected a type in \`types\`, got \`${primaryType}\``,
    );
  }
  const encoder: Encoder = {
    membersLeft: MAX_MEMBERS,
    untilPause: WORK_AT_ONCE,
    structs,
    prepared: new Map(),
  };
  // 0x19 || 0x01 || hashStruct(domain) || hashStruct(message). The message is omitted when the domain is the primary
  // type.
  const parts = [
    Uint8Array.of(0x19, 0x01),
    yield* hashStruct(encoder, DOMAIN, domain, `${pointer}/domain`, 0),
  ];
  if (primaryType !== DOMAIN) {
    parts.push(yield* hashStruct(encoder, primaryType, message, `${pointer}/message`, 0));
  }
  return keccak_256(concatBytes(...parts));
}

function readTypes(typedData: TypedData, pointer: string): Structs {
  const structs = readStructs(typedData.types, `${pointer}/types`);
  if (!structs.has(DOMAIN)) structs.set(DOMAIN, deriveDomainFields(typedData.domain));
  assertDomainCovered(structs.get(DOMAIN) ?? [], typedData.domain, `${pointer}/domain`);
  return structs;
}

function assertDomainCovered(
  fields: readonly TypedDataField[],
  domain: Readonly<Record<string, unknown>>,
  pointer: string,
): void {
  for (const [key, value] of Object.entries(domain)) {
    if (value === undefined || value === null || value === '') continue;
    if (!fields.some(({ name }) => name === key)) {
      throw new InvalidTypedDataError(pointer, `expected a key of the domain type, got \`${key}\``);
    }
  }
}

// keccak256(typeHash || encodeData(struct))
function* hashStruct(encoder: Encoder, name: string, value: unknown, pointer: string, depth: number): Steps {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidTypedDataError(pointer, `expected an object of type \`${name}\``);
  }
  const struct = value as Record<string, unknown>;
  const { typeHash, members } = prepareStruct(encoder, name);
  encoder.membersLeft -= members.length;
  if (encoder.membersLeft < 0) {
    throw new InvalidTypedDataError(
      pointer,
      `expected at most ${MAX_MEMBERS} members in all structs together`,
    );
  }
  const encoded = new Uint8Array(WORD_BYTES * (members.length + 1));
  encoded.set(typeHash);
  for (const [index, member] of members.entries()) {
    const own = Object.hasOwn(struct, member.name) ? struct[member.name] : undefined;
    const word = yield* encodeValue(encoder, member, own, `${pointer}/${member.at}`, depth + 1);
    encoded.set(word, WORD_BYTES * (index + 1));
  }
  return yield* hash(encoder, encoded);
}

function* encodeValue(
  encoder: Encoder,
  { type, declared }: Pick<Member, 'type' | 'declared'>,
  value: unknown,
  pointer: string,
  depth: number,
): Steps {
  if (depth > MAX_DEPTH) throw new InvalidTypedDataError(pointer, `expected at most ${MAX_DEPTH} levels`);
  if (type.kind === 'struct') {
    if (value === null || value === undefined) return NO_STRUCT;
    return yield* hashStruct(encoder, type.name, value, pointer, depth);
  }
  if (value === undefined) throw new InvalidTypedDataError(pointer, 'expected a value');
  if (type.kind === 'array') return yield* hashArray(encoder, { type, declared }, value, pointer, depth);
  yield* work(encoder, 1 + (typeof value === 'string' ? value.length / BLOCK_BYTES : 0));
  return encodeElementaryValue(type.name, value, pointer);
}

// keccak256(concat(encoded elements))
function* hashArray(
  encoder: Encoder,
  { type, declared }: { readonly type: ParsedType & { readonly kind: 'array' }; readonly declared: string },
  value: unknown,
  pointer: string,
  depth: number,
): Steps {
  if (!Array.isArray(value) || (type.length !== undefined && value.length !== type.length)) {
    throw new InvalidTypedDataError(pointer, `expected an array of type \`${declared}\``);
  }
  const elementType = { type: type.element, declared: declared.slice(0, declared.lastIndexOf('[')) };
  const encoded = new Uint8Array(WORD_BYTES * value.length);
  for (const [index, element] of value.entries()) {
    const word = yield* encodeValue(encoder, elementType, element, `${pointer}/${index}`, depth + 1);
    encoded.set(word, WORD_BYTES * index);
  }
  return yield* hash(encoder, encoded);
}

function prepareStruct(encoder: Encoder, name: string): PreparedStruct {
  const known = encoder.prepared.get(name);
  if (known !== undefined) return known;
  const encoded = utf8ToBytes(encodeType(encoder.structs, name));
  encoder.untilPause -= encoded.length / BLOCK_BYTES;
  const members = (encoder.structs.get(name) ?? []).map(({ name: member, type }) => ({
    name: member,
    at: escapePointer(member),
    declared: type,
    type: parseType(encoder.structs, type),
  }));
  const prepared = { typeHash: keccak_256(encoded), members };
  encoder.prepared.set(name, prepared);
  return prepared;
}

function* hash(encoder: Encoder, bytes: Uint8Array): Steps {
  const hasher = keccak_256.create();
  for (let start = 0; start < bytes.length; start += BYTES_AT_ONCE) {
    const part = bytes.subarray(start, start + BYTES_AT_ONCE);
    yield* work(encoder, 1 + part.length / BLOCK_BYTES);
    hasher.update(part);
  }
  return hasher.digest();
}

function* work(encoder: Encoder, amount: number): Generator<undefined, void> {
  encoder.untilPause -= amount;
  if (encoder.untilPause > 0) return;
  encoder.untilPause = WORK_AT_ONCE;
  yield;
}
