import { encodeType, isElementaryType, readStructs } from '../../signing/ethereum/typed-data-types.ts';
import { InvalidTypedDataError } from '../../signing/signing-errors.ts';
import type { ActionUnit, PolicyFacts } from '../action.ts';
import {
  type ConditionInput,
  type ConditionSource,
  PolicyFormatError,
  type RuleAction,
} from '../condition-source.ts';
import { absent, type Observation, presentAll, sizeOfType, unreadable, type ValueKind } from '../values.ts';

type TypedData = NonNullable<ActionUnit['typedData']>;
type TypeMap = TypedData['types'];

const METHODS = ['eth_signTypedData_v4'];
const DOMAIN_TYPE = 'EIP712Domain';
/** CHOICE: the maximum nesting of arrays within arrays. */
const MAX_ARRAY_DEPTH = 16;
const ARRAY = /^(.*)\[[0-9]*\]$/;
/** Stands for a value that is not an array or struct although its type requires one. */
const MALFORMED = Symbol('malformed');

function readTypedData(unit: ActionUnit, read: (typedData: TypedData) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.typedData === undefined ? absent('not typed data') : read(unit.typedData);
}

/**
 * Converts a JSON value to the string that is compared. Returns undefined if the value does not have the EIP-712
 * type.
 */
function asText(kind: ValueKind, value: unknown): string | undefined {
  if (kind === 'number') {
    if (typeof value === 'bigint') return value.toString();
    if (Number.isSafeInteger(value)) return String(value);
    return typeof value === 'string' ? value : undefined;
  }
  if (kind === 'boolean') return typeof value === 'boolean' ? String(value) : undefined;
  return typeof value === 'string' ? value : undefined;
}

function observe(kind: ValueKind, values: readonly unknown[]): Observation {
  if (values.length === 0) return absent('no such element');
  const texts = values.map((value) => asText(kind, value));
  return texts.every((text) => text !== undefined)
    ? presentAll(texts)
    : unreadable('a value does not match its declared type');
}

/** The EIP-712 domain: the chain id as a number, the verifying contract as an address. */
export const ethereumTypedDataDomain: ConditionSource = {
  methods: METHODS,
  resolve({ field }, action) {
    const isChainId = field === 'chainId' || field === 'chain_id';
    if (!isChainId && field !== 'verifyingContract' && field !== 'verifying_contract') return undefined;
    const kind: ValueKind = isChainId ? 'number' : 'evm_address';
    const name = isChainId ? 'chainId' : 'verifyingContract';
    // If the domain has no chain id or no contract, the signature may be valid for the chain or contract that a DENY
    // rule names.
    const missing = action === 'DENY' ? unreadable : absent;
    return {
      kind,
      read: (unit) =>
        readTypedData(unit, ({ domain }) =>
          domain[name] === undefined || domain[name] === null
            ? missing(`the domain has no ${name}`)
            : observe(kind, [domain[name]]),
        ),
    };
  },
};

function kindOf(type: string): ValueKind {
  if (/^u?int[0-9]*$/.test(type)) return 'number';
  if (type === 'address') return 'evm_address';
  if (type === 'bool') return 'boolean';
  return /^bytes[0-9]*$/.test(type) ? 'hex' : 'text';
}

/**
 * Rejects types that signing also rejects.
 *
 * CHOICE: a condition on such types is an error, because it could never be true.
 */
function assertTypes(types: TypeMap): void {
  try {
    readStructs(types, '/typed_data/types');
  } catch (error) {
    if (!(error instanceof InvalidTypedDataError)) throw error;
    throw new PolicyFormatError(error.field, error.message);
  }
}

/** Finds the elementary type at the end of the path. Member names lead into structs; array indexes are optional. */
function findType(types: TypeMap, type: string, path: readonly string[]): string | undefined {
  const array = ARRAY.exec(type);
  if (array) {
    const [head] = path;
    const rest = head !== undefined && /^[0-9]{1,6}$/.test(head) ? path.slice(1) : path;
    return findType(types, array[1] ?? '', rest);
  }
  const struct = Object.hasOwn(types, type) ? types[type] : undefined;
  if (struct === undefined) return path.length === 0 && isElementaryType(type) ? type : undefined;
  const [head, ...rest] = path;
  const member = struct.find(({ name }) => name === head);
  if (member && member.type.split('[').length - 1 > MAX_ARRAY_DEPTH) {
    throw new PolicyFormatError(
      '/typed_data/types',
      `expected at most ${MAX_ARRAY_DEPTH} nested arrays in \`${member.name}\``,
    );
  }
  return member && findType(types, member.type, rest);
}

/** A value in a message, with its type. */
interface Place {
  readonly type: string;
  readonly value: unknown;
}

interface FieldPath {
  readonly types: TypeMap;
  readonly lookedThrough: PolicyFacts['lookedThrough'];
}

function walk(field: FieldPath, { type, value }: Place, path: readonly string[]): readonly unknown[] {
  const { types, lookedThrough } = field;
  const array = ARRAY.exec(type);
  if (array) {
    if (!Array.isArray(value)) return [MALFORMED];
    const elements: readonly unknown[] = value;
    const [head, ...rest] = path;
    if (head !== undefined && /^[0-9]{1,6}$/.test(head)) {
      const index = Number(head);
      return index < elements.length
        ? walk(field, { type: array[1] ?? '', value: elements[index] }, rest)
        : [];
    }
    lookedThrough?.(elements.length);
    return elements.flatMap((element) => walk(field, { type: array[1] ?? '', value: element }, path));
  }
  const struct = Object.hasOwn(types, type) ? types[type] : undefined;
  if (struct === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [MALFORMED];
  const [head, ...rest] = path;
  // The member exists: `findType` has already walked the same path through the same types.
  const member = struct.find(({ name }) => name === head)!;
  return walk(field, { type: member.type, value: (value as Record<string, unknown>)[member.name] }, rest);
}

/** Returns whether two type maps have the same types with the same members in the same order. */
function sameTypes(left: TypeMap, right: TypeMap): boolean {
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => {
      const a = left[name] ?? [];
      const b = Object.hasOwn(right, name) ? right[name] : undefined;
      return (
        b !== undefined &&
        a.length === b.length &&
        a.every((member, i) => member.name === b[i]?.name && member.type === b[i]?.type)
      );
    })
  );
}

/** The structs in a message, at any depth, by type. */
interface FoundStructs {
  readonly byType: ReadonlyMap<string, readonly unknown[]>;
  /** The types of malformed values: values that are not an array or struct although their type requires one. */
  readonly malformed: ReadonlySet<string>;
}

/**
 * Caches the structs found in typed data, so that one search serves all conditions. INVARIANT: the typed data of a
 * unit never change.
 */
const searched = new WeakMap<TypedData, { found?: FoundStructs; readonly encoded: Map<string, string> }>();

function searchOf(typedData: TypedData) {
  const known = searched.get(typedData) ?? { encoded: new Map<string, string>() };
  searched.set(typedData, known);
  return known;
}

/** Returns the EIP-712 `encodeType` string of a struct. */
function encodedType(typedData: TypedData, name: string): string {
  const { encoded } = searchOf(typedData);
  const known = encoded.get(name) ?? encodeType(new Map(Object.entries(typedData.types)), name);
  encoded.set(name, known);
  return known;
}

function structsIn(typedData: TypedData): FoundStructs {
  const search = searchOf(typedData);
  search.found ??= findStructs(typedData);
  return search.found;
}

function findStructs({ types, primaryType, message }: TypedData): FoundStructs {
  const structs = new Map(
    Object.entries(types).map(([name, members]) => {
      const inner = members.filter(({ type }) => Object.hasOwn(types, baseOf(type)));
      const arrays = new Set(inner.filter(({ type }) => ARRAY.test(type)));
      return [
        name,
        { found: [] as unknown[], members: new Map(inner.map((own) => [own.name, own.type])), arrays },
      ];
    }),
  );
  const malformed = new Set<string>();
  // A work list instead of recursion, because the client determines the depth.
  const places: Place[] = [{ type: primaryType, value: message }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { type, value } = place;
    const array = ARRAY.exec(type);
    if (array) {
      if (!Array.isArray(value)) malformed.add(baseOf(type));
      else for (const element of value) places.push({ type: array[1] ?? '', value: element });
      continue;
    }
    // An absent struct has no signed content.
    if (value === undefined || value === null) continue;
    const struct = structs.get(type);
    struct?.found.push(value);
    if (typeof value !== 'object') malformed.add(type);
    else {
      // Iterates over the members of the value, not of its type, because a type may have thousands of members that a
      // value omits.
      for (const [name, inner] of Object.entries(value)) {
        const innerType = struct?.members.get(name);
        if (innerType !== undefined) places.push({ type: innerType, value: inner });
      }
      for (const array of struct?.arrays ?? []) {
        if (Object.hasOwn(value, array.name)) continue;
        // An array cannot be absent, so a missing array makes the type malformed.
        malformed.add(baseOf(array.type));
        struct?.arrays.delete(array);
      }
    }
  }
  return { byType: new Map([...structs].map(([name, { found }]) => [name, found])), malformed };
}

/**
 * Returns all values of the struct type `wanted` in a message, at any depth. So it finds messages inside a tree whose
 * signature counts for each leaf, such as bulk orders, and messages inside a wrapper. A malformed value is
 * `MALFORMED`.
 */
function occurrences(typedData: TypedData, wanted: string): readonly unknown[] {
  const { byType, malformed } = structsIn(typedData);
  const found = byType.get(wanted) ?? [];
  if (malformed.size === 0) return found;
  const containing = structsContaining(typedData.types, wanted);
  return [...malformed].some((type) => containing.has(type)) ? [...found, MALFORMED] : found;
}

function baseOf(type: string): string {
  return type.split('[', 1)[0]!;
}

/** Returns the names of the wanted struct and of all structs that contain it, directly or through other structs. */
function structsContaining(types: TypeMap, wanted: string): ReadonlySet<string> {
  const users = new Map<string, Set<string>>();
  for (const [name, members] of Object.entries(types)) {
    for (const { type } of members) {
      const base = baseOf(type);
      users.set(base, (users.get(base) ?? new Set<string>()).add(name));
    }
  }
  const containing = new Set([wanted]);
  for (const name of containing) for (const user of users.get(name) ?? []) containing.add(user);
  return containing;
}

/**
 * Returns a function that finds the structs of a message to which a condition on a declared type applies. For an
 * ALLOW rule, this is the message itself, whose type map must be equal. For a DENY rule, it is every struct of that
 * type in the message. Other structs and a listed domain type do not change what is signed.
 */
function createReader(
  { types, primary_type: primaryType }: NonNullable<ConditionInput['typed_data']>,
  action: RuleAction,
): (typedData: TypedData) => readonly unknown[] {
  if (action === 'ALLOW') {
    return (typedData) =>
      typedData.primaryType === primaryType && sameTypes(types, typedData.types) ? [typedData.message] : [];
  }
  const declaredType = encodeType(new Map(Object.entries(types)), primaryType);
  return (typedData) =>
    Object.hasOwn(typedData.types, primaryType) && encodedType(typedData, primaryType) === declaredType
      ? occurrences(typedData, primaryType)
      : [];
}

/** The EIP-712 message. Absent unless the message has the declared type. */
export const ethereumTypedDataMessage: ConditionSource = {
  methods: METHODS,
  resolve(condition, action) {
    const declared = condition.typed_data;
    if (declared === undefined) throw new PolicyFormatError('/typed_data', 'is required');
    if (!Object.hasOwn(declared.types, declared.primary_type)) {
      throw new PolicyFormatError(
        '/typed_data/primary_type',
        `expected a type in \`types\`, got \`${declared.primary_type}\``,
      );
    }
    if (declared.primary_type === DOMAIN_TYPE) {
      throw new PolicyFormatError(
        '/typed_data/primary_type',
        `expected a message type, got \`${DOMAIN_TYPE}\``,
      );
    }
    assertTypes(declared.types);
    const path = condition.field.split('.');
    const type = findType(declared.types, declared.primary_type, path);
    if (type === undefined) return undefined;
    const kind = kindOf(type);
    const structsOf = createReader(declared, action);
    return {
      kind,
      sizeBytes: sizeOfType(type),
      read: (unit, { lookedThrough }) =>
        readTypedData(unit, (typedData) => {
          const structs = structsOf(typedData);
          // Every condition reads at least one struct, so only additional structs count as searched.
          lookedThrough?.(Math.max(0, structs.length - 1));
          const found: FieldPath = { types: declared.types, lookedThrough };
          return structs.length === 0
            ? absent('the types differ from those of the condition')
            : observe(
                kind,
                structs.flatMap((value) => walk(found, { type: declared.primary_type, value }, path)),
              );
        }),
    };
  },
};
