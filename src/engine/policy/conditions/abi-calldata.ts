import { LRUCache } from 'lru-cache';
import * as AbiFunction from 'ox/AbiFunction';
import * as AbiItem from 'ox/AbiItem';
import type * as Hex from 'ox/Hex';
import { bytesTo0xHex } from '../../crypto/encoding.ts';
import {
  AbiEncodingError,
  type AbiParameter,
  type AbiValue,
  compileArguments,
} from '../../signing/ethereum/abi-values.ts';
import type { PolicyFacts } from '../action.ts';
import { type ConditionInput, PolicyFormatError, type ResolvedField } from '../condition-source.ts';
import {
  absent,
  type Observation,
  present,
  presentAll,
  sizeOfType,
  unreadable,
  type ValueKind,
} from '../values.ts';

/** The maximum number of items in the ABI of one condition. */
const MAX_ABI_ITEMS = 200;
const SELECTOR_BYTES = 4;
/**
 * CHOICE: the maximum nesting of arrays and tuples. No real smart contract exceeds it, and the cost of reading
 * calldata grows with it.
 */
const MAX_DEPTH = 16;

interface NamedFunction {
  readonly name: string;
  readonly selector: Hex.Hex;
  /** The canonical signature, for example `transfer(address,uint256)`. */
  readonly signature: string;
  readonly inputs: readonly AbiParameter[];
  /**
   * Decodes arguments by position, so that parameters with duplicate or missing names are read too.
   *
   * @throws AbiEncodingError
   */
  readonly readArguments: (argumentBytes: Uint8Array) => readonly AbiValue[];
}

/** An elementary value in the decoded arguments: the path to it and its ABI type. */
interface Leaf {
  readonly steps: readonly (number | 'each')[];
  readonly type: string;
}

/** The function that the calldata calls, with its arguments, or the reason why they cannot be read. */
type Decoded = { readonly fn: NamedFunction; readonly args: readonly AbiValue[] } | Observation;

interface AbiItemInput {
  readonly type?: string;
  readonly name?: string;
  readonly inputs?: readonly AbiParameter[];
}

function readFunction(
  earlier: readonly NamedFunction[],
  { name = '', inputs = [] }: AbiItemInput,
): NamedFunction {
  if (!IDENTIFIER.test(name)) throw new Error('a function needs a name');
  assertEncodable(inputs);
  const item = AbiFunction.from({
    type: 'function',
    name,
    inputs,
    outputs: [],
    stateMutability: 'nonpayable',
  });
  const signature = AbiItem.getSignature(item);
  const selector = AbiFunction.getSelector(item);
  requireUniqueSelector(earlier, { selector, signature });
  return { name, selector, signature, inputs, readArguments: compileArguments(inputs) };
}

/**
 * CHOICE: the maximum number of functions in the different ABIs of a policy, or of an aggregation, because each
 * function is hashed for its selector.
 */
const MAX_FUNCTIONS = 2_000;

/** Rejects conditions with too many functions. The pointer of the error points to the conditions. */
export function requireFewFunctions(
  inputs: readonly { readonly abi?: readonly unknown[] | undefined }[],
): void {
  const abis = new Map(inputs.flatMap(({ abi }) => (abi === undefined ? [] : [[JSON.stringify(abi), abi]])));
  const count = [...abis.values()].reduce((sum, abi) => sum + abi.length, 0);
  if (count <= MAX_FUNCTIONS) return;
  throw new PolicyFormatError('', `expected at most ${MAX_FUNCTIONS} items in different ABIs, got ${count}`);
}

/** Parsed ABIs by their JSON. The conditions of a policy usually repeat the same ABI. */
const abiCache = new LRUCache<string, readonly NamedFunction[]>({ max: 1000 });

function functionsOf(abi: readonly unknown[]): readonly NamedFunction[] {
  const text = JSON.stringify(abi);
  const cached = abiCache.get(text);
  if (cached !== undefined) return cached;
  const functions = readFunctions(abi);
  abiCache.set(text, functions);
  return functions;
}

function readFunctions(abi: readonly unknown[]): readonly NamedFunction[] {
  if (abi.length === 0 || abi.length > MAX_ABI_ITEMS) {
    throw new PolicyFormatError('/abi', `expected 1 to ${MAX_ABI_ITEMS} items, got ${abi.length}`);
  }
  const functions: NamedFunction[] = [];
  for (const [index, raw] of abi.entries()) {
    const item = raw as AbiItemInput;
    if (item.type !== 'function') continue;
    try {
      functions.push(readFunction(functions, item));
    } catch (cause) {
      throw new PolicyFormatError(
        `/abi/${index}`,
        `not a valid function: ${(cause as Error).message.split('\n')[0]}`,
      );
    }
  }
  if (functions.length === 0)
    throw new PolicyFormatError('/abi', 'expected at least one item of type `function`');
  return functions;
}

/** Rejects different functions with the same selector, because a call could mean either. */
function requireUniqueSelector(
  functions: readonly NamedFunction[],
  { selector, signature }: Pick<NamedFunction, 'selector' | 'signature'>,
): void {
  const clash = functions.find((other) => other.selector === selector && other.signature !== signature);
  if (clash) throw new Error(`it has the same selector as \`${clash.signature}\``);
}

// Solidity has no arrays of fixed length zero and no empty tuples.
const ARRAYS = /(?<!\])(?:\[(?:[1-9][0-9]*)?\])+$/;
const IDENTIFIER = /^[a-zA-Z$_][a-zA-Z0-9$_]*$/;
// CHOICE: only canonical type names, as compilers emit them. With `uint` instead of `uint256`, the computed selector
// would differ from the selector of calls.
const ELEMENTARY =
  /^(?:address|bool|string|bytes(?:[1-9]|[12][0-9]|3[0-2])?|u?int(?:8|16|24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208|216|224|232|240|248|256)|tuple)$/;

function assertEncodable(parameters: readonly AbiParameter[], outerDepth = 0): void {
  for (const { type, components } of parameters) {
    const depth = outerDepth + type.split('[').length - 1 + (type.startsWith('tuple') ? 1 : 0);
    if (depth > MAX_DEPTH) throw new Error(`expected at most ${MAX_DEPTH} nested arrays and tuples`);
    const base = type.replace(ARRAYS, '');
    if (!ELEMENTARY.test(base)) throw new Error(`unknown type \`${type}\``);
    if (base === 'tuple') {
      if (!components?.length) throw new Error('a tuple needs components');
      assertEncodable(components, depth);
    }
  }
}

function findLeaf(parameters: readonly AbiParameter[], path: readonly string[]): Leaf | undefined {
  const [head, ...rest] = path;
  const index = parameters.findIndex((parameter, i) =>
    parameter.name ? parameter.name === head : String(i) === head,
  );
  const parameter = parameters[index];
  if (parameter === undefined) return undefined;
  return descend(parameter, parameter.type, rest, [index]);
}

function descend(
  parameter: AbiParameter,
  type: string,
  path: readonly string[],
  steps: readonly (number | 'each')[],
): Leaf | undefined {
  const array = /^(.*)\[[0-9]*\]$/.exec(type);
  if (array) {
    // A number selects one element. Without a number, the condition covers every element (see README, "Several
    // values").
    const [head, ...rest] = path;
    const element = array[1] ?? '';
    return head !== undefined && /^[0-9]{1,6}$/.test(head)
      ? descend(parameter, element, rest, [...steps, Number(head)])
      : descend(parameter, element, path, [...steps, 'each']);
  }
  if (type === 'tuple') {
    const inner = findLeaf(parameter.components ?? [], path);
    return inner && { steps: [...steps, ...inner.steps], type: inner.type };
  }
  return path.length === 0 ? { steps, type } : undefined;
}

function kindOf(type: string): ValueKind {
  if (/^u?int/.test(type)) return 'number';
  if (type === 'address') return 'evm_address';
  if (type === 'bool') return 'boolean';
  return type.startsWith('bytes') ? 'hex' : 'text';
}

/** The arguments of a call, or the reason that they cannot be read. */
type ReadArguments = readonly AbiValue[] | Observation;

/**
 * Caches decoded arguments by calldata and function signature. Calldata is decoded only once, even if conditions use
 * different ABIs for the same function. INVARIANT: the bytes of a unit never change.
 */
const argumentCache = new WeakMap<Uint8Array, Map<string, ReadArguments>>();

function decodeCalldata(functions: readonly NamedFunction[], dataBytes: Uint8Array): Decoded {
  if (dataBytes.length < SELECTOR_BYTES) return absent('calldata shorter than a selector');
  const selector = bytesTo0xHex(dataBytes.subarray(0, SELECTOR_BYTES));
  const fn = functions.find((candidate) => candidate.selector === selector);
  if (fn === undefined) return absent(`no function of the ABI has the selector ${selector}`);
  const args = cachedArguments(fn, dataBytes);
  return 'state' in args ? args : { fn, args };
}

function cachedArguments(fn: NamedFunction, dataBytes: Uint8Array): ReadArguments {
  let bySignature = argumentCache.get(dataBytes);
  if (bySignature === undefined) {
    bySignature = new Map();
    argumentCache.set(dataBytes, bySignature);
  }
  let args = bySignature.get(fn.signature);
  if (args === undefined) {
    args = decodeArguments(fn, dataBytes);
    bySignature.set(fn.signature, args);
  }
  return args;
}

/**
 * Decodes the arguments of a call. Accepts only the canonical encoding: calldata with trailing bytes, gaps or
 * non-zero padding is unreadable.
 */
function decodeArguments(fn: NamedFunction, dataBytes: Uint8Array): ReadArguments {
  if (fn.inputs.length === 0) {
    return dataBytes.length === SELECTOR_BYTES ? [] : unreadable('trailing bytes after the calldata');
  }
  try {
    return fn.readArguments(dataBytes.subarray(SELECTOR_BYTES));
  } catch (error) {
    if (!(error instanceof AbiEncodingError)) throw error;
    const reason = error.isTruncated ? `does not decode as ${fn.name}` : 'is not in canonical encoding';
    return unreadable(`calldata ${reason}`);
  }
}

/** Reads one field of calldata. */
type ReadCalldata = (dataBytes: Uint8Array, facts: PolicyFacts) => Observation;

/**
 * Returns the values at the end of the path. `steps` must be what `findLeaf` built from the types that decoded `value`.
 */
function walk(
  value: AbiValue,
  steps: readonly (number | 'each')[],
  lookedThrough: PolicyFacts['lookedThrough'],
): readonly string[] {
  const [step, ...rest] = steps;
  if (step === undefined) return [value as string];
  const elements = value as readonly AbiValue[];
  if (step === 'each') {
    lookedThrough?.(elements.length);
    return elements.flatMap((element) => walk(element, rest, lookedThrough));
  }
  return step < elements.length ? walk(elements[step]!, rest, lookedThrough) : [];
}

/**
 * Resolves a field of a calldata condition. `function_name` or a function's name reads the name of the called function.
 * `<function>.<parameter>` reads an argument; further names select members of tuples, and indexes select elements of
 * arrays. The selector distinguishes overloads; `read` handles every overload that has the field.
 */
function resolveCalldataField(
  condition: ConditionInput,
): (Omit<ResolvedField, 'read'> & { read: ReadCalldata }) | undefined {
  const functions = functionsOf(condition.abi ?? []);
  const { field, operator } = condition;
  if (field === 'function_name' || functions.some(({ name }) => name === field)) {
    return {
      kind: 'text',
      // Calls outside the ABI have no name. A call can therefore satisfy `neq` for every name.
      expectedInstead: (value) =>
        operator === 'neq' || functions.some(({ name }) => name === value)
          ? undefined
          : 'the name of a function in `abi`',
      read: (dataBytes) => {
        const decoded = decodeCalldata(functions, dataBytes);
        return 'fn' in decoded ? present(decoded.fn.name) : decoded;
      },
    };
  }
  const [functionName, ...path] = field.split('.');
  const leaves = new Map<Hex.Hex, Leaf>();
  for (const fn of functions) {
    const leaf = fn.name === functionName ? findLeaf(fn.inputs, path) : undefined;
    if (leaf) leaves.set(fn.selector, leaf);
  }
  const kinds = new Set([...leaves.values()].map(({ type }) => kindOf(type)));
  if (kinds.size > 1)
    throw new PolicyFormatError(
      '/field',
      `\`${field}\` has different types in the overloads of ${functionName}`,
    );
  const [kind] = kinds;
  if (kind === undefined) return undefined;
  const sizes = new Set([...leaves.values()].map(({ type }) => sizeOfType(type)));
  const [sizeBytes] = sizes.size === 1 ? sizes : [];
  return {
    kind,
    sizeBytes,
    read: (dataBytes, { lookedThrough }) => {
      const decoded = decodeCalldata(functions, dataBytes);
      if (!('fn' in decoded)) return decoded;
      const leaf = leaves.get(decoded.fn.selector);
      if (leaf === undefined) return absent(`the call is to ${decoded.fn.name}`);
      const values = walk(decoded.args, leaf.steps, lookedThrough);
      return values.length === 0 ? absent('no such element') : presentAll(values);
    },
  };
}

/** Resolves a calldata field. `readData` takes the calldata from the unit. */
export function calldataField(
  condition: ConditionInput,
  readData: (
    unit: Parameters<ResolvedField['read']>[0],
    read: (dataBytes: Uint8Array) => Observation,
  ) => Observation,
): ResolvedField | undefined {
  const resolved = resolveCalldataField(condition);
  return (
    resolved && {
      ...resolved,
      read: (unit, facts) => readData(unit, (dataBytes) => resolved.read(dataBytes, facts)),
    }
  );
}
