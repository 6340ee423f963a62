import fc from 'fast-check';
import { type AbiFunction, toFunctionSelector } from 'viem';
import { expect, test } from 'vitest';
import type { ActionUnit } from '../../src/engine/policy/action.ts';
import { compilePolicy } from '../../src/engine/policy/compile.ts';
import { type ConditionInput, PolicyFormatError } from '../../src/engine/policy/condition-source.ts';
import { allowsAction, decisionOf, evaluatePolicy } from '../../src/engine/policy/evaluate.ts';
import { isLong, policyOf, rulesAndUnits, seed } from './policy-cases.ts';
import { factsOf, worlds } from './policy-requests.ts';

const numRuns = isLong ? 400_000 : 2_000;

/** Units with arbitrary content of arbitrary types, as from a broken decoder. */
const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true });
const madUnits = fc.constantFrom(...rulesAndUnits).chain(({ method, rules, units }) =>
  fc.record({
    method: fc.constant(method),
    rules: fc.array(fc.constantFrom(...rules), { minLength: 1, maxLength: 4 }),
    unit: fc.constantFrom(...units),
    place: fc.nat(7),
    instead: anything,
  }),
);

test('evaluation never throws for JSON that no decoder produces', () => {
  fc.assert(
    fc.property(madUnits, worlds, ({ method, rules, unit, place, instead }, world) => {
      const open = { ...unit, ...spoil(unit, place, instead) };
      const action = { method, units: [open] };
      const decision = evaluatePolicy(policyOf(rules), action, factsOf(world));
      expect(decisionOf(decision).allowed).toBe(decision.allowed);
      expect(allowsAction(policyOf(rules), action, factsOf(world))).toBe(decision.allowed);
    }),
    { seed, numRuns },
  );
});

/** Replaces one value in the free JSON of a unit: domain, message, transaction or body. */
function spoil(unit: ActionUnit, place: number, instead: unknown): object {
  const replaceOne = (object: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const names = Object.keys(object);
    return names.length === 0 ? {} : { ...object, [names[place % names.length]!]: instead };
  };
  const { typedData, xrplTransaction, requestBody } = unit;
  if (typedData !== undefined) {
    return {
      typedData: {
        ...typedData,
        domain: replaceOne(typedData.domain),
        message: replaceOne(typedData.message),
      },
    };
  }
  if (xrplTransaction !== undefined) return { xrplTransaction: replaceOne(xrplTransaction) };
  return requestBody === undefined ? {} : { requestBody: replaceOne(requestBody) };
}

/** Compiles one condition; undefined when it is refused as invalid, which is the only possible error. */
function compileOne(condition: ConditionInput, method: string): ReturnType<typeof compilePolicy> | undefined {
  const rules = (['ALLOW', 'DENY'] as const).map((action) => ({
    id: action,
    name: action,
    method,
    action,
    conditions: [condition],
  }));
  try {
    return compilePolicy({ id: 'policy', chain_type: 'ethereum', rules });
  } catch (error) {
    expect(error).toBeInstanceOf(PolicyFormatError);
    return undefined;
  }
}

const operator = fc.constantFrom('eq' as const, 'neq' as const);
const value = fc.constantFrom('1', '0x', 'true', 'text', `0x${'0'.repeat(40)}`);

// Members of Object.prototype, recursive types, arrays of arrays, and nothing.
const strangeNames = ['a', 'b', '0', 'toString', '__proto__', 'constructor', ''];
const strangeTypes = [
  ...['A', 'A[]', 'A[2]', 'toString', '__proto__', '', '[]', 'string[', 'tuple', 'Ä'],
  ...['uint256', 'string[][]', 'address', 'bool', 'bytes32[1]', `int8${'[]'.repeat(16)}`],
];
const path = fc.array(fc.constantFrom(...strangeNames, '1', '999999', '9999999'), { maxLength: 5 });
const members = fc.array(
  fc.record({ name: fc.constantFrom(...strangeNames), type: fc.constantFrom(...strangeTypes) }),
  { maxLength: 3 },
);
// Most of these types cannot be signed, so they are refused; the following ones can.
const strangeTypeMaps = fc.dictionary(
  fc.constantFrom('A', 'toString', '__proto__', 'EIP712Domain', ''),
  members,
);
const signableMembers = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('a', 'b', 'toString', '__proto__', 'constructor'),
    type: fc.constantFrom('A', 'A[]', 'A[2]', 'toString', 'toString[]', ...strangeTypes.slice(-6)),
  }),
  { selector: ({ name }) => name, maxLength: 4 },
);
const typeMaps = fc.oneof(
  { arbitrary: strangeTypeMaps, weight: 1 },
  { arbitrary: fc.record({ A: signableMembers, toString: signableMembers }), weight: 3 },
);

test('typed data with unusual types is refused or evaluated, whatever the message', () => {
  let compiled = 0;
  fc.assert(
    fc.property(typeMaps, typeMaps, path, operator, value, anything, (types, others, steps, ...rest) => {
      const [comparison, given, message] = rest;
      const condition: ConditionInput = {
        field_source: 'ethereum_typed_data_message',
        field: steps.join('.'),
        operator: comparison,
        value: given,
        typed_data: { types, primary_type: 'A' },
      };
      const policy = compileOne(condition, 'eth_signTypedData_v4');
      if (policy === undefined) return;
      compiled += 1;
      for (const own of [types, others]) {
        const typedData = { domain: {}, types: own, primaryType: 'A', message: { a: message, b: [message] } };
        const action = { method: 'eth_signTypedData_v4', units: [{ label: 'typed data', typedData }] };
        const decision = evaluatePolicy(policy, action, factsOf({ nowMs: 0, sets: {}, totals: {} }));
        expect(decisionOf(decision).allowed).toBe(decision.allowed);
        expect(allowsAction(policy, action, factsOf({ nowMs: 0, sets: {}, totals: {} }))).toBe(
          decision.allowed,
        );
      }
    }),
    { seed, numRuns: 2 * numRuns },
  );
  expect(compiled).toBeGreaterThan(numRuns / 400);
});

interface Parameter {
  readonly name?: string;
  readonly type: string;
  readonly components?: readonly Parameter[];
}
const { parameter } = fc.letrec<{ parameter: Parameter }>((tie) => ({
  parameter: fc.record(
    {
      name: fc.constantFrom(...strangeNames),
      type: fc.constantFrom(...strangeTypes, 'tuple[]', 'uint256[0]', 'uint256[1000000000]', 'bytes'),
      components: fc.array(tie('parameter') as fc.Arbitrary<Parameter>, { maxLength: 2 }),
    },
    { requiredKeys: ['type'] },
  ) as fc.Arbitrary<Parameter>,
}));
const strangeFunctions = fc.record(
  {
    type: fc.constant('function'),
    name: fc.constantFrom('a', 'b', ''),
    inputs: fc.array(parameter, { maxLength: 2 }),
  },
  { requiredKeys: ['type'] },
);

test('an unusual ABI is refused or evaluated, whatever the calldata', () => {
  let compiled = 0;
  const words = fc.array(fc.constantFrom(0n, 1n, 2n, 32n, 64n, 96n, 2n ** 32n, 2n ** 256n - 1n), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(
      fc.array(strangeFunctions, { maxLength: 2 }),
      path,
      operator,
      value,
      words,
      (abi, steps, ...rest) => {
        const [comparison, given, numbers] = rest;
        const condition: ConditionInput = {
          field_source: 'ethereum_calldata',
          field: ['a', ...steps].join('.'),
          operator: comparison,
          value: given,
          abi,
        };
        const policy = compileOne(condition, 'eth_signTransaction');
        if (policy === undefined) return;
        compiled += 1;
        const selectors = abi.map(selectorOf);
        for (const selector of ['', ...selectors]) {
          const hex = selector + numbers.map((number) => number.toString(16).padStart(64, '0')).join('');
          const data = Uint8Array.from(Buffer.from(hex, 'hex'));
          const ethereumCall = { to: undefined, value: 0n, chainId: 1n, data };
          const action = { method: 'eth_signTransaction', units: [{ label: 'call', ethereumCall }] };
          const decision = evaluatePolicy(policy, action, factsOf({ nowMs: 0, sets: {}, totals: {} }));
          expect(decisionOf(decision).allowed).toBe(decision.allowed);
          expect(allowsAction(policy, action, factsOf({ nowMs: 0, sets: {}, totals: {} }))).toBe(
            decision.allowed,
          );
        }
      },
    ),
    { seed, numRuns },
  );
  expect(compiled).toBeGreaterThan(numRuns / 100);
});

/** For a compiled ABI. viem refuses some that ox accepts; their calldata is encoded without a selector. */
function selectorOf(item: object): string {
  try {
    return toFunctionSelector({
      outputs: [],
      stateMutability: 'payable',
      inputs: [],
      ...item,
    } as unknown as AbiFunction).slice(2);
  } catch {
    return '';
  }
}
