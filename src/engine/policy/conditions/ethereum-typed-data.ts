import { encodeType, isElementaryType, readStructs } from '../../signing/ethereum/typed-data-types.ts';
import { InvalidTypedDataError } from '../../signing/signing-errors.ts';
import type { ActionUnit } from '../action.ts';
import type { ConditionInput, ConditionSource, RuleAction } from '../condition-source.ts';
import { PolicyFormatError } from '../policy-format-error.ts';
import { absent, type Observation, presentAll, sizeOfType, unreadable, type ValueKind } from '../values.ts';

type TypedData = NonNullable<ActionUnit['typedData']>;
type TypeMap = TypedData['types'];

const METHODS = ['eth_signTypedData_v4'];
const DOMAIN_TYPE = 'EIP712Domain';
/** CHOICE: nesting of arrays within arrays. */
const MAX_ARRAY_DEPTH = 16;
/** Marks a value that is not an array or struct as its type requires. */
const MALFORMED = Symbol('malformed');

function readTypedData(unit: ActionUnit, read: (typedData: TypedData) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.typedData === undefined ? absent('not typed data') : read(unit.typedData);
}

/** The text that a JSON value is compared as; undefined when the value does not have the EIP-712 type. */
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

/** EIP-712 domain: the chain id as a number, the verifying contract as an address. */
export const ethereumTypedDataDomain: ConditionSource = {
  methods: METHODS,
  resolve({ field }, action) {
    const isChainId = field === 'chainId' || field === 'chain_id';
    if (!isChainId && field !== 'verifyingContract' && field !== 'verifying_contract') return undefined;
    const kind: ValueKind = isChainId ? 'number' : 'evm_address';
    const name = isChainId ? 'chainId' : 'verifyingContract';
    // Without a chain id or a contract in its domain, a signature may be valid for the one that a DENY rule names.
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

/** CHOICE: refuses types that signing refuses as well: a condition on them could never be true. */
function assertTypes(types: TypeMap): void {
  try {
    readStructs(types, '/typed_data/types');
  } catch (error) {
    if (!(error instanceof InvalidTypedDataError)) throw error;
    throw new PolicyFormatError(error.field, error.message);
  }
}

/** The elementary type at the end of the path: member names lead into structs; array indexes are optional. */
function findType(types: TypeMap, type: string, path: readonly string[]): string | undefined {
  const array = /^(.*)\[[0-9]*\]$/.exec(type);
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

function walk(types: TypeMap, type: string, value: unknown, path: readonly string[]): readonly unknown[] {
  const array = /^(.*)\[[0-9]*\]$/.exec(type);
  if (array) {
    if (!Array.isArray(value)) return [MALFORMED];
    const elements: readonly unknown[] = value;
    const [head, ...rest] = path;
    if (head !== undefined && /^[0-9]{1,6}$/.test(head)) {
      const index = Number(head);
      return index < elements.length ? walk(types, array[1] ?? '', elements[index], rest) : [];
    }
    return elements.flatMap((element) => walk(types, array[1] ?? '', element, path));
  }
  const struct = Object.hasOwn(types, type) ? types[type] : undefined;
  if (struct === undefined) return [value];
  if (typeof value !== 'object' || value === null) return [MALFORMED];
  const [head, ...rest] = path;
  // INVARIANT: findType walked the same path through the same types.
  const member = struct.find(({ name }) => name === head)!;
  return walk(types, member.type, (value as Record<string, unknown>)[member.name], rest);
}

/** Whether both maps have the same types with the same members in the same order. */
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

/** A struct of a message that is still to be searched. */
interface Place {
  readonly type: string;
  readonly value: unknown;
}

/**
 * The values of the struct `wanted` in a message, at any depth: also in the trees of messages whose signature counts for
 * each leaf, such as bulk orders, and in those that wrap another message. Malformed values are `MALFORMED`.
 */
function occurrences(types: TypeMap, message: Place, wanted: string): readonly unknown[] {
  const containing = structsContaining(types, wanted);
  const found: unknown[] = [];
  // A list of places, not a recursion: the depth is the client's.
  const places = [message];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { type, value } = place;
    const array = /^(.*)\[[0-9]*\]$/.exec(type);
    if (array) {
      if (!Array.isArray(value)) found.push(MALFORMED);
      else for (const element of value) places.push({ type: array[1] ?? '', value: element });
      continue;
    }
    // An absent struct has no content that is signed.
    if (value === undefined || value === null) continue;
    if (type === wanted) found.push(value);
    if (typeof value !== 'object') found.push(MALFORMED);
    else {
      for (const member of Object.hasOwn(types, type) ? types[type]! : []) {
        if (containing.has(baseOf(member.type)))
          places.push({ type: member.type, value: (value as Record<string, unknown>)[member.name] });
      }
    }
  }
  return found;
}

function baseOf(type: string): string {
  return type.split('[', 1)[0]!;
}

/** The structs that are the wanted one or have a member that leads to it. */
function structsContaining(types: TypeMap, wanted: string): ReadonlySet<string> {
  const containing = new Set([wanted]);
  const names = Object.keys(types);
  for (let before = 0; before !== containing.size; ) {
    before = containing.size;
    for (const name of names) {
      if (types[name]?.some(({ type }) => containing.has(baseOf(type)))) containing.add(name);
    }
  }
  return containing;
}

/**
 * Returns what a condition on a declared type reads of a message: the message itself in an ALLOW rule, whose type maps
 * must be equal; in a DENY rule every struct of that type in the message. Other structs and a listed domain type do not
 * change what is signed.
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
  return ({ types: given, primaryType: type, message: value }) =>
    Object.hasOwn(given, primaryType) &&
    encodeType(new Map(Object.entries(given)), primaryType) === declaredType
      ? occurrences(given, { type, value }, primaryType)
      : [];
}

/** EIP-712 message. Absent unless it is of the declared type. */
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
      read: (unit) =>
        readTypedData(unit, (typedData) => {
          const structs = structsOf(typedData);
          return structs.length === 0
            ? absent('the types differ from those of the condition')
            : observe(
                kind,
                structs.flatMap((struct) => walk(declared.types, declared.primary_type, struct, path)),
              );
        }),
    };
  },
};
