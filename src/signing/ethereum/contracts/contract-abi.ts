import * as AbiFunction from 'ox/AbiFunction';
import * as AbiParameters from 'ox/AbiParameters';
import type * as Hex from 'ox/Hex';
import { bytesTo0xHex, hexToBytes } from '../../../crypto/encoding.ts';
import { once } from '../../../load-once.ts';

/** What a function takes or returns. Addresses are lower-case 0x hex when decoded, numbers are bigints above 48 bits. */
export type AbiValue = string | number | bigint | boolean | readonly AbiValue[];

/** The functions of a contract. `Name` is the name of a function. */
export interface ContractAbi<Name extends string> {
  encodeCall(name: Name, ...args: AbiValue[]): Uint8Array;
  /** Undefined for other functions and for malformed arguments. */
  decodeCall(data: Uint8Array): { readonly name: Name; readonly args: readonly AbiValue[] } | undefined;
  encodeResult(name: Name, ...values: AbiValue[]): Uint8Array;
  /** Undefined when `data` is not what the function returns, for example nothing. */
  decodeResult(name: Name, data: Uint8Array): readonly AbiValue[] | undefined;
}

type NameOf<Signature extends string> = Signature extends `function ${infer Name}(${string}` ? Name : never;

/** Reads signatures like `function name(address who) returns (uint256)`; names must be unique. */
export function contractAbi<const Signature extends string>(
  signatures: readonly Signature[],
): ContractAbi<NameOf<Signature>> {
  type Name = NameOf<Signature>;
  // Read on first use: contracts are declared when the program starts, and few requests call them.
  const functions = once(() => {
    const items = signatures.map(
      (signature) => AbiFunction.from(signature as string) as AbiFunction.AbiFunction,
    );
    return new Map(items.map((item) => [item.name, item]));
  });
  const bySelector = once(
    () => new Map([...functions().values()].map((item) => [AbiFunction.getSelector(item) as string, item])),
  );
  const named = (name: string): AbiFunction.AbiFunction => {
    const item = functions().get(name);
    if (item === undefined) throw new Error(`expected a function of the contract, got \`${name}\``);
    return item;
  };
  return {
    encodeCall: (name, ...args) => hexToBytes(AbiFunction.encodeData(named(name), args as never).slice(2)),
    decodeCall(data) {
      if (data.length < 4) return undefined;
      const item = bySelector().get(bytesTo0xHex(data.subarray(0, 4)));
      if (item === undefined) return undefined;
      const args = orUndefined(() => AbiFunction.decodeData(item, bytesTo0xHex(data) as Hex.Hex));
      if (args === undefined && item.inputs.length > 0) return undefined;
      return { name: item.name as Name, args: lowerCase(args ?? []) };
    },
    encodeResult(name, ...values) {
      const result = values.length === 1 ? values[0] : values;
      return hexToBytes(AbiFunction.encodeResult(named(name), result as never).slice(2));
    },
    decodeResult(name, data) {
      if (data.length === 0) return undefined;
      // `AbiFunction.decodeResult` unwraps a single value.
      return orUndefined(() =>
        lowerCase(AbiParameters.decode(named(name).outputs, bytesTo0xHex(data) as Hex.Hex)),
      );
    },
  };
}

// ox writes addresses with their checksum.
function lowerCase(values: unknown): readonly AbiValue[] {
  return (values as AbiValue[]).map((value) => {
    if (typeof value === 'string') return /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : value;
    return Array.isArray(value) ? lowerCase(value) : value;
  });
}

function orUndefined<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
