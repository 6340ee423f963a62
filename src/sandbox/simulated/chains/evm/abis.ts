import type * as AbiError from 'ox/AbiError';
import * as AbiEvent from 'ox/AbiEvent';
import type * as AbiFunction from 'ox/AbiFunction';
import * as AbiItem from 'ox/AbiItem';
import * as AbiParameters from 'ox/AbiParameters';
import type * as Hex from 'ox/Hex';
import { once } from '../../../../engine/load-once.ts';
import type { ChainStore } from '../store.ts';
import { solidity } from './contracts/generated/solidity.ts';

/**
 * Decodes calls, events and errors of smart contracts, with the interfaces of the sandbox's own contracts and the
 * interfaces that users upload.
 */

type Item = AbiError.AbiError | AbiEvent.AbiEvent | AbiFunction.AbiFunction;

/** The interface of a smart contract. */
interface NamedAbi {
  readonly name: string;
  /** A lower-case 0x address; null for an interface that applies to any contract. */
  readonly address: string | null;
  readonly items: readonly Item[];
}

/** A function, event or error with the values of its parameters, as strings. */
export interface Decoded {
  readonly name: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly type: string;
    readonly value: string;
  }[];
}

/** The known interfaces. All chains of a store share them. */
export interface Abis {
  list(): readonly NamedAbi[];
  /** Stores an interface given in JSON, and replaces one with the same name. */
  put(abi: {
    name: string;
    address: string | null;
    items: readonly unknown[];
  }): NamedAbi | 'malformed' | 'too many';
  /** Removes an interface. Returns false if none has this name. */
  remove(name: string): boolean;
  /** Decodes the data of a call. Returns undefined if no known function matches. */
  call(to: string, data: string): Decoded | undefined;
  /**
   * Returns the name of the function with this selector, without decoding arguments. Undefined if no function is known.
   */
  functionName(to: string, selector: string): string | undefined;
  event(log: { address: string; topics: readonly string[]; data: string }): Decoded | undefined;
  /** Decodes the error in the data of a revert. Returns undefined for an unknown error. */
  error(data: string): Decoded | undefined;
}

/** CHOICE: the maximum number of interfaces, and of items in all interfaces together. */
const MAX_ABIS = 500;
const MAX_ITEMS = 20_000;

// Source: Solidity documentation, "Contract ABI Specification", types.
const TYPE =
  /^(u?int(8|16|24|32|40|48|56|64|72|80|88|96|1[0-9][0-9]|2[0-5][0-9])?|address|bool|string|function|tuple|bytes([1-9]|[12][0-9]|3[0-2])?)(\[[0-9]*\])*$/;
const NAME = /^[a-zA-Z_$][a-zA-Z0-9_$]*$/;
const kinds: readonly unknown[] = ['error', 'event', 'function'];

/** Reads the items of an interface in JSON, and skips items of other kinds. Returns undefined if one is malformed. */
function readAbi(items: readonly unknown[]): readonly Item[] | undefined {
  const objects = items.filter(isObject);
  if (objects.length !== items.length) return undefined;
  const own = objects.filter(({ type }) => kinds.includes(type));
  const isRead = own.every(
    ({ name, inputs }) => typeof name === 'string' && NAME.test(name) && areParameters(inputs),
  );
  return isRead ? (own as unknown[] as Item[]) : undefined;
}

function areParameters(inputs: unknown): boolean {
  if (inputs === undefined) return true;
  return (
    Array.isArray(inputs) &&
    inputs.every(
      (input) =>
        isObject(input) &&
        TYPE.test(String(input.type)) &&
        (!String(input.type).startsWith('tuple') || areParameters(input.components ?? [])),
    )
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The interfaces of the sandbox's contracts. */
const own = once((): readonly Known[] =>
  Object.values(solidity)
    .flatMap(({ abi }): readonly string[] => abi)
    .map((text) => {
      const item = AbiItem.from(text as never) as Item;
      return { item, selector: selectorOf(item), address: null };
    }),
);

interface Row {
  readonly name: string;
  readonly address: string | null;
  readonly items: string;
}

export function makeAbis(store: ChainStore): Abis {
  let indexed: { readonly content: number; readonly known: ReadonlyMap<string, Known[]> } | undefined;
  const rowsNow = (): readonly Row[] => store.all<Row>('select name, address, items from abis order by name');

  /**
   * Returns the functions, events and errors by kind and selector. The index stays valid until an interface or the
   * whole store changes.
   */
  function knownNow(): ReadonlyMap<string, Known[]> {
    if (indexed?.content === store.content()) return indexed.known;
    const known = new Map<string, Known[]>();
    for (const each of [...rowsNow().flatMap(readRow), ...own()]) {
      const key = `${each.item.type} ${each.selector}`;
      known.set(key, [...(known.get(key) ?? []), each]);
    }
    indexed = { content: store.content(), known };
    return known;
  }

  function find(kind: Item['type'], selector: string, address?: string): readonly Known[] {
    const found = knownNow().get(`${kind} ${selector}`) ?? [];
    const its = found.filter((each) => each.address !== null && each.address === address);
    return [...its, ...found.filter((each) => each.address === null)];
  }

  return {
    list: () => rowsNow().map((row) => ({ ...row, items: readRow(row).map(({ item }) => item) })),
    put({ name, address, items }) {
      const read = readAbi(items);
      if (read === undefined) return 'malformed';
      const others = rowsNow().filter((row) => row.name !== name);
      const count = others.reduce((sum, row) => sum + readRow(row).length, read.length);
      if (others.length >= MAX_ABIS || count > MAX_ITEMS) return 'too many';
      const known = read.map((item): Stored => [selectorOf(item), item]);
      store.run('insert or replace into abis values (?, ?, ?)', name, address, JSON.stringify(known));
      indexed = undefined;
      return { name, address, items: read };
    },
    remove(name) {
      if (!rowsNow().some((row) => row.name === name)) return false;
      store.run('delete from abis where name = ?', name);
      indexed = undefined;
      return true;
    },
    call: (to, data) =>
      firstDecoded(find('function', data.slice(0, 10), to), ({ item }) => parametersIn(item, data)),
    functionName: (to, selector) => find('function', selector, to)[0]?.item.name,
    event: ({ address, topics, data }) =>
      firstDecoded(find('event', topics[0] ?? '', address), ({ item }) => {
        const event = item as AbiEvent.AbiEvent;
        const indexedCount = event.inputs.filter(({ indexed: isIndexed }) => isIndexed === true).length;
        if (indexedCount !== topics.length - 1) return undefined;
        const log = { topics: topics as [Hex.Hex, ...Hex.Hex[]], data: data as Hex.Hex };
        return valuesOf(item, AbiEvent.decode(event, log) as Record<string, unknown> | readonly unknown[]);
      }),
    error: (data) => firstDecoded(find('error', data.slice(0, 10)), ({ item }) => parametersIn(item, data)),
  };
}

/** A stored item with its selector, so that opening a store computes no hashes. */
type Stored = readonly [selector: string, item: Item];

interface Known {
  readonly item: Item;
  /** Four bytes for a function or an error, 32 for an event. */
  readonly selector: string;
  readonly address: string | null;
}

function selectorOf(item: Item): string {
  const hash = AbiItem.getSignatureHash(item);
  return item.type === 'event' ? hash : hash.slice(0, 10);
}

function readRow({ address, items }: Row): Known[] {
  return (JSON.parse(items) as readonly Stored[]).map(([selector, item]) => ({ item, selector, address }));
}

function parametersIn(item: Item, data: string): Decoded['arguments'] {
  return valuesOf(item, AbiParameters.decode(item.inputs, `0x${data.slice(10)}`));
}

function firstDecoded(
  candidates: readonly Known[],
  decode: (known: Known) => Decoded['arguments'] | undefined,
): Decoded | undefined {
  for (const known of candidates) {
    try {
      const decoded = decode(known);
      if (decoded !== undefined) return { name: known.item.name, arguments: decoded };
    } catch {
      // Another item has the same selector, or the data is malformed. Try the next one.
    }
  }
  return undefined;
}

function valuesOf(
  { inputs }: Item,
  values: Record<string, unknown> | readonly unknown[],
): Decoded['arguments'] {
  const isList = Array.isArray(values);
  return inputs.map(({ name = '', type }, position) => ({
    ...{ name, type },
    value: inWords(isList ? values[position] : (values as Record<string, unknown>)[name]),
  }));
}

/** Writes a value as text: numbers in decimal, addresses and bytes in lower-case hex, lists and structs as JSON. */
function inWords(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    return JSON.stringify(value, (_, member: unknown) =>
      typeof member === 'bigint' ? String(member) : lowerHex(member),
    );
  }
  return String(lowerHex(value));
}

function lowerHex(value: unknown): unknown {
  return typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value) ? value.toLowerCase() : value;
}
