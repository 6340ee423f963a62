import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { once } from '../../load-once.ts';
import { InvalidTypedDataError } from '../signing-errors.ts';
import { signDigestHex } from './ecdsa-signature.ts';
import { encodeElementaryValue, isElementaryType } from './typed-data-values.ts';

export interface TypedDataField {
  readonly name: string;
  readonly type: string;
}

/** EIP-712 typed data with the API contract's names. */
export interface TypedData {
  readonly domain: Readonly<Record<string, unknown>>;
  /** Without `EIP712Domain`, its fields are derived from the domain's keys. */
  readonly types: Readonly<Record<string, readonly TypedDataField[]>>;
  readonly primary_type: string;
  readonly message: Readonly<Record<string, unknown>>;
}

interface Encoder {
  /** Values that may still be encoded. */
  remainingValues: number;
  remainingCharacters: number;
  readonly types: ReadonlyMap<string, readonly TypedDataField[]>;
  /** Cache of keccak256(encodeType(name)) by struct name. */
  readonly typeHashes: Map<string, Uint8Array>;
}

const DOMAIN = 'EIP712Domain';
const DOMAIN_FIELDS: readonly TypedDataField[] = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
  { name: 'salt', type: 'bytes32' },
];
const MAX_DEPTH = 64;
// CHOICE: far above the types of real applications. The encoded type of each struct repeats all structs that it refers
// to, so without a limit one request could block the process for minutes.
const MAX_TYPES = 128;
const MAX_TYPES_LENGTH = 32_768;
// CHOICE: counts structs, array elements and members. Each struct takes two hashes, so without a limit one request
// could block the process for seconds.
const MAX_VALUES = 2_000;
// CHOICE: of all texts and hex bytes together, which are hashed whole.
const MAX_CHARACTERS = 262_144;
// Names must not contain the punctuation of encodeType. Struct names may contain colons, which existing applications
// use.
// Made on first use, because the classes of Unicode take 8 ms of every start.
const patterns = once(() => ({
  member: /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u,
  struct: /^[\p{ID_Start}$_][\p{ID_Continue}$:]*$/u,
}));

/** `eth_signTypedData_v4`: 0x hex of r || s || v (27/28). Throws InvalidTypedDataError. Source: EIP-712. */
export function signTypedData(secret: Uint8Array, params: { readonly typed_data: TypedData }): `0x${string}` {
  return signDigestHex(hashTypedData(params.typed_data, '/typed_data'), secret);
}

/**
 * The 32-byte EIP-712 digest. Every declared field must have a value of its type. Domain keys outside the domain type
 * are refused, because the signature would not cover them.
 * `pointer`: prefix of the pointers in errors. Throws InvalidTypedDataError.
 */
export function hashTypedData(typedData: TypedData, pointer = ''): Uint8Array {
  const { domain, message, primary_type: primaryType } = typedData;
  const types = readTypes(typedData, `${pointer}/types`);
  if (!types.has(primaryType)) {
    throw new InvalidTypedDataError(
      `${pointer}/primary_type`,
      `expected a type in \`types\`, got \`${primaryType}\``,
    );
  }
  const encoder: Encoder = {
    remainingValues: MAX_VALUES,
    remainingCharacters: MAX_CHARACTERS,
    types,
    typeHashes: new Map(),
  };
  // 0x19 || 0x01 || hashStruct(domain) || hashStruct(message), the latter omitted when the domain is the primary type
  const parts = [Uint8Array.of(0x19, 0x01), hashStruct(encoder, DOMAIN, domain, `${pointer}/domain`, 0)];
  if (primaryType !== DOMAIN) {
    parts.push(hashStruct(encoder, primaryType, message, `${pointer}/message`, 0));
  }
  return keccak_256(concatBytes(...parts));
}

/** The fields of a domain without a declared type, in the order of EIP-712. */
export function deriveDomainFields(domain: Readonly<Record<string, unknown>>): readonly TypedDataField[] {
  // CHOICE: an empty string, null or an absent key means "not part of the domain", except an empty `name`, which
  // published clients include.
  return DOMAIN_FIELDS.filter(({ name }) => {
    const value = domain[name];
    if (value === undefined || value === null) return false;
    return value !== '' || name === 'name';
  });
}

/** The declared structs by name. Throws InvalidTypedDataError for types that can never be signed. */
export function readStructs(
  declared: TypedData['types'],
  pointer: string,
): Map<string, readonly TypedDataField[]> {
  const types = new Map(Object.entries(declared));
  assertTypesBounded(types, pointer);
  for (const [name, fields] of types) {
    if (!patterns().struct.test(name) || isElementaryType(name)) {
      throw new InvalidTypedDataError(pointer, `expected a struct name, got \`${name}\``);
    }
    assertFields(fields, `${pointer}/${name}`);
  }
  return types;
}

function readTypes(typedData: TypedData, pointer: string): Map<string, readonly TypedDataField[]> {
  const types = readStructs(typedData.types, pointer);
  if (!types.has(DOMAIN)) types.set(DOMAIN, deriveDomainFields(typedData.domain));
  assertDomainCovered(types.get(DOMAIN) ?? [], typedData.domain);
  return types;
}

function assertTypesBounded(types: Map<string, readonly TypedDataField[]>, pointer: string): void {
  let length = 0;
  for (const [name, fields] of types) {
    length += name.length;
    for (const field of fields) length += field.name.length + field.type.length;
  }
  if (types.size > MAX_TYPES || length > MAX_TYPES_LENGTH) {
    throw new InvalidTypedDataError(
      pointer,
      `expected at most ${MAX_TYPES} structs with ${MAX_TYPES_LENGTH} characters in total`,
    );
  }
}

function assertFields(fields: readonly TypedDataField[], pointer: string): void {
  const known = new Set<string>();
  for (const { name } of fields) {
    if (!patterns().member.test(name)) {
      throw new InvalidTypedDataError(pointer, `expected an identifier as field name, got \`${name}\``);
    }
    if (known.has(name))
      throw new InvalidTypedDataError(pointer, `expected distinct field names, got \`${name}\` twice`);
    known.add(name);
  }
}

function assertDomainCovered(
  fields: readonly TypedDataField[],
  domain: Readonly<Record<string, unknown>>,
): void {
  for (const [key, value] of Object.entries(domain)) {
    if (value === undefined || value === null || value === '') continue;
    if (!fields.some(({ name }) => name === key)) {
      throw new InvalidTypedDataError(
        '/typed_data/domain',
        `expected a key of the domain type, got \`${key}\``,
      );
    }
  }
}

// keccak256(typeHash || encodeData(struct))
function hashStruct(
  encoder: Encoder,
  type: string,
  value: unknown,
  pointer: string,
  depth: number,
): Uint8Array {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidTypedDataError(pointer, `expected an object of type \`${type}\``);
  }
  const struct = value as Record<string, unknown>;
  const words = (encoder.types.get(type) ?? []).map((field) => {
    const at = `${pointer}/${field.name}`;
    if (!Object.hasOwn(struct, field.name)) throw new InvalidTypedDataError(at, 'expected a value');
    return encodeValue(encoder, field.type, struct[field.name], at, depth + 1);
  });
  return keccak_256(concatBytes(typeHash(encoder, type), ...words));
}

function encodeValue(
  encoder: Encoder,
  type: string,
  value: unknown,
  pointer: string,
  depth: number,
): Uint8Array {
  if (depth > MAX_DEPTH) throw new InvalidTypedDataError(pointer, `expected at most ${MAX_DEPTH} levels`);
  encoder.remainingValues -= 1;
  if (encoder.remainingValues < 0) {
    throw new InvalidTypedDataError(pointer, `expected at most ${MAX_VALUES} values in total`);
  }
  if (typeof value === 'string') encoder.remainingCharacters -= value.length;
  if (encoder.remainingCharacters < 0) {
    throw new InvalidTypedDataError(pointer, `expected at most ${MAX_CHARACTERS} characters in total`);
  }
  const array = /^(.*)\[(\d*)\]$/su.exec(type);
  if (array !== null) return encodeArray(encoder, array, value, pointer, depth);
  if (encoder.types.has(type)) return hashStruct(encoder, type, value, pointer, depth);
  return encodeElementaryValue(type, value, pointer);
}

// keccak256(concat(encoded elements))
function encodeArray(
  encoder: Encoder,
  [type, elementType = '', length = '']: RegExpExecArray,
  value: unknown,
  pointer: string,
  depth: number,
): Uint8Array {
  if (!Array.isArray(value) || (length !== '' && value.length !== Number(length))) {
    throw new InvalidTypedDataError(pointer, `expected an array of type \`${type}\``);
  }
  const words = value.map((element, index) =>
    encodeValue(encoder, elementType, element, `${pointer}/${index}`, depth + 1),
  );
  return keccak_256(concatBytes(...words));
}

function typeHash(encoder: Encoder, type: string): Uint8Array {
  const known = encoder.typeHashes.get(type);
  if (known !== undefined) return known;
  const hash = keccak_256(utf8ToBytes(encodeType(encoder.types, type)));
  encoder.typeHashes.set(type, hash);
  return hash;
}

/**
 * EIP-712's encodeType: name(type member,...) of the struct, followed by that of every referenced struct, sorted by
 * name. Structs of equal encodeType have equal type hashes, so equal values of them have equal digests.
 */
export function encodeType(types: ReadonlyMap<string, readonly TypedDataField[]>, type: string): string {
  const referred = new Set<string>([type]);
  for (const name of referred) {
    for (const field of types.get(name) ?? []) {
      const base = field.type.split('[', 1)[0] ?? '';
      if (types.has(base)) referred.add(base);
    }
  }
  referred.delete(type);
  return [type, ...[...referred].sort()]
    .map((name) => {
      const members = (types.get(name) ?? []).map((field) => `${field.type} ${field.name}`);
      return `${name}(${members.join(',')})`;
    })
    .join('');
}
