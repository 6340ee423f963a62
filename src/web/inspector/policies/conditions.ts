import { type AmountUnit, amountText, unitOf } from '../../../engine/assets/amount-units.ts';
import {
  fieldSources,
  type PolicyField,
  ruleMethods,
  typedFields,
} from '../../../sandbox/generated/policy-fields.ts';
import type { PolicyObservation } from '../../../sandbox/generated/schemas.ts';

/** A condition while it is edited. It may be incomplete, and it has only the members that its field source uses. */
export interface Condition {
  readonly field_source: string;
  readonly field: string;
  readonly operator: string;
  readonly value: string | readonly string[];
  readonly abi?: unknown;
  readonly typed_data?: unknown;
}

interface AbiParameter {
  readonly name?: string;
  readonly type?: string;
  readonly components?: readonly AbiParameter[];
}

interface AbiItem extends AbiParameter {
  readonly inputs?: readonly AbiParameter[];
}

/** Returns the methods that a rule of a policy of this chain type can have. */
export function methodsOf(chainType: string): readonly string[] {
  return (Object.hasOwn(ruleMethods, chainType) ? ruleMethods[chainType] : undefined) ?? [];
}

/**
 * Returns the field sources that a rule for this method can use. A rule for `*` can use those of every method of the
 * chain type.
 */
export function sourcesOf(chainType: string, method: string): readonly string[] {
  const wanted = method === '*' ? methodsOf(chainType) : [method];
  return Object.entries(fieldSources)
    .filter(([, { methods }]) => methods === null || methods.some((each) => wanted.includes(each)))
    .map(([name]) => name);
}

/** Describes a field source in a sentence. */
export function aboutSource(source: string): string {
  return sourceNamed(source)?.description ?? '';
}

/**
 * Returns the member in which a condition with this source declares its fields: `abi`, or `typed_data` for its types.
 * Undefined if the source needs no declaration.
 */
export function declarationOf(source: string): 'abi' | 'typed_data' | undefined {
  return sourceNamed(source)?.declared_by ?? undefined;
}

/**
 * Returns the prefix of a source's fields that name stored objects, such as `aggregation.`. Undefined if it has no such
 * fields.
 */
export function prefixOf(source: string): string | undefined {
  return sourceNamed(source)?.prefix?.text;
}

function sourceNamed(name: string) {
  return Object.hasOwn(fieldSources, name) ? fieldSources[name] : undefined;
}

/**
 * Returns the fields that a condition can use, by name: those of its source, and those that its ABI or typed data
 * declares.
 */
export function fieldsOf(condition: Condition): Readonly<Record<string, PolicyField>> {
  const known = sourceNamed(condition.field_source)?.fields ?? {};
  const declared = declaredTypes(condition).map(([name, type]): [string, PolicyField] => [
    name,
    typedFields[sampleOf(type)]!,
  ]);
  return { ...known, ...Object.fromEntries(declared) };
}

/**
 * Returns the field that a condition names, or undefined if its source has no such field or if its declaration is
 * incomplete.
 */
export function fieldOf(condition: Condition): PolicyField | undefined {
  const fields = fieldsOf(condition);
  if (Object.hasOwn(fields, condition.field)) return fields[condition.field];
  const prefix = sourceNamed(condition.field_source)?.prefix;
  return prefix != null && condition.field.startsWith(prefix.text) ? prefix.field : undefined;
}

/** Returns the operators that fit a condition's field, or all operators if the field is unknown. */
export function operatorsOf(condition: Condition): readonly string[] {
  return fieldOf(condition)?.operators ?? everyOperator;
}

const everyOperator: readonly string[] = [
  ...new Set(
    [
      ...Object.values(typedFields),
      ...Object.values(fieldSources).flatMap(({ fields }) => Object.values(fields)),
    ].flatMap(({ operators }) => operators),
  ),
];

/**
 * Returns the type in `typedFields` that is compared in the same way, for example `uint256` for `uint8`, or `string` if
 * there is none.
 */
function sampleOf(type: string): string {
  if (Object.hasOwn(typedFields, type)) return type;
  const family = type.replace(/(?<!\d)\d+$/, '');
  const same = Object.keys(typedFields).find(
    (each) => each !== 'bytes' && each.replace(/(?<!\d)\d+$/, '') === family,
  );
  return same ?? 'string';
}

function declaredTypes(condition: Condition): readonly (readonly [name: string, type: string])[] {
  const { abi, typed_data: typed } = condition;
  switch (declarationOf(condition.field_source)) {
    case 'abi':
      return Array.isArray(abi) ? abi.flatMap(fieldsOfFunction) : [];
    case 'typed_data':
      return fieldsOfStruct(typed);
    default:
      return [];
  }
}

function fieldsOfFunction(item: AbiItem | null): [string, string][] {
  if (item?.type !== 'function' || item.name === undefined) return [];
  return leavesOf(item.inputs ?? [], `${item.name}.`);
}

/**
 * Returns the elementary fields of parameters. A tuple's members are prefixed with its name, and an array counts as
 * its element.
 */
function leavesOf(parameters: readonly AbiParameter[], before: string): [string, string][] {
  if (!Array.isArray(parameters)) return [];
  return parameters.flatMap(({ name = '', type = '', components = [] }) => {
    const element = type.split('[', 1)[0]!;
    if (name === '') return [];
    return element === 'tuple'
      ? leavesOf(components, `${before}${name}.`)
      : [[`${before}${name}`, element] as [string, string]];
  });
}

const MAX_DEPTH = 4;

function fieldsOfStruct(typed: unknown): [string, string][] {
  const { types = {}, primary_type: primary = '' } = (typed ?? {}) as {
    types?: Record<string, readonly { name: string; type: string }[]>;
    primary_type?: string;
  };
  const membersOf = (type: string): readonly { name: string; type: string }[] | undefined => {
    const members: unknown = Object.hasOwn(types, type) ? types[type] : undefined;
    return Array.isArray(members) ? members : undefined;
  };
  const walk = (type: string, before: string, depth: number): [string, string][] =>
    (membersOf(type) ?? []).flatMap((member): [string, string][] => {
      const element = String(member.type).split('[', 1)[0]!;
      const name = `${before}${member.name}`;
      // A type may contain itself.
      if (depth < MAX_DEPTH && membersOf(element) !== undefined) return walk(element, `${name}.`, depth + 1);
      return membersOf(element) === undefined ? [[name, element]] : [];
    });
  return walk(primary, '', 0);
}

const operatorWords: Readonly<Record<string, string>> = {
  eq: 'is',
  neq: 'is not',
  gt: 'is more than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  in: 'is one of',
  in_condition_set: 'is in the condition set',
  contains: 'contains',
  starts_with: 'starts with',
  ends_with: 'ends with',
};

/** Describes an operator in words. Without an entry in the table, its own name is used. */
export function operatorText(operator: string): string {
  return Object.hasOwn(operatorWords, operator) ? operatorWords[operator]! : operator.replaceAll('_', ' ');
}

/** The resources that conditions name by id: aggregations with their sums, and condition sets. */
export interface NamedParts {
  readonly sums: ReadonlyMap<string, { readonly name: string; readonly unit: AmountUnit | undefined }>;
  readonly sets: ReadonlyMap<string, string>;
}

export const noNames: NamedParts = { sums: new Map(), sets: new Map() };

const AGGREGATION = 'aggregation.';

/** Returns the sum that a field names, if it is known. */
export function sumOf({ field }: Pick<Condition, 'field'>, { sums }: NamedParts) {
  return field.startsWith(AGGREGATION) ? sums.get(field.slice(AGGREGATION.length)) : undefined;
}

/** Describes a condition in words, such as `to is one of 0x1, 0x2` or `value is at most 0.1 ETH`. */
export function conditionText(
  condition: Condition,
  others: readonly Condition[] = [],
  names = noNames,
): string {
  const { operator, value } = condition;
  const sum = sumOf(condition, names);
  const field = sum?.name ?? condition.field;
  const unit = sum?.unit ?? unitOf(condition, others);
  const shown = [value]
    .flat()
    .map((each) => {
      const set = operator === 'in_condition_set' ? names.sets.get(each) : undefined;
      return set ?? valueText(each, unit);
    })
    .join(', ');
  return `${field} ${operatorText(operator)} ${shown}`;
}

const MAX_VALUES = 20;

/** Formats the observed value of a condition, such as `observed 1 ETH`. */
export function observedText({ state, values, reason }: PolicyObservation, unit?: AmountUnit): string {
  if (state !== 'present') return reason === undefined ? state : `${state} (${reason})`;
  const shown = (values ?? []).slice(0, MAX_VALUES).map((value) => valueText(value, unit));
  const rest = (values ?? []).length - shown.length;
  return `observed ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

function valueText(value: string, unit: AmountUnit | undefined): string {
  const amount = unit === undefined ? undefined : amountText(value, unit);
  return amount === undefined ? JSON.stringify(value) : `${amount} ${unit!.symbol}`;
}

/** How a value is entered: one line, a choice, or one value per line. */
export interface ValueInput {
  readonly form: 'line' | 'choice' | 'lines';
  readonly mode: 'text' | 'numeric' | 'decimal';
  readonly example: string;
  /** The values to choose from. */
  readonly choices: readonly string[];
}

const inputs: Readonly<Record<string, Pick<ValueInput, 'mode' | 'example'>>> = {
  number: { mode: 'numeric', example: '1000000 or 0xf4240' },
  decimal: { mode: 'decimal', example: '12.5' },
  evm_address: { mode: 'text', example: '0x… (40 hex digits)' },
  tron_address: { mode: 'text', example: 'T…' },
  solana_address: { mode: 'text', example: 'base58 address' },
  xrpl_address: { mode: 'text', example: 'r…' },
  sui_address: { mode: 'text', example: '0x…' },
  hex: { mode: 'text', example: '0x…' },
  account: { mode: 'text', example: 'address' },
};

/** Returns the kind of input that fits the field and the operator of a condition. */
export function valueInputOf(condition: Condition): ValueInput {
  const { operator } = condition;
  if (operator === 'in_condition_set') {
    return { form: 'line', mode: 'text', example: "the condition set's id", choices: [] };
  }
  const { kind = 'text', values } = fieldOf(condition) ?? {};
  const { mode, example } = inputs[kind] ?? { mode: 'text', example: 'text' };
  const choices = kind === 'boolean' ? ['true', 'false'] : (values ?? []);
  if (operator === 'in') return { form: 'lines', mode, example: `${example}, one on each line`, choices };
  return { form: choices.length > 0 ? 'choice' : 'line', mode, example, choices };
}
