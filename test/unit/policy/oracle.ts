import { TronWeb } from 'tronweb';
import { type AbiFunction, decodeFunctionData, encodeFunctionData, toFunctionSelector, toHex } from 'viem';
import { isValidXAddress, xAddressToClassicAddress } from 'xrpl';
import type { ActionUnit, PolicyAction, SolanaAccount } from '../../../src/engine/policy/action.ts';
import type { AggregationDefinition } from '../../../src/engine/policy/aggregation.ts';
import type { RuleInput } from '../../../src/engine/policy/compile.ts';

/** External facts: the existing condition sets and running totals, by id. */
export interface World {
  readonly nowMs: number;
  readonly sets: Readonly<Record<string, readonly string[]>>;
  readonly totals: Readonly<Record<string, bigint | 'unreadable'>>;
}

type Kind =
  | 'number'
  | 'decimal'
  | 'boolean'
  | 'evm'
  | 'tron'
  | 'sui'
  | 'xrpl'
  | 'currency'
  | 'account'
  | 'bytes'
  | 'text';
type Truth = 'true' | 'false' | 'unknown';
type Condition = RuleInput['conditions'][number];
type Effect = RuleInput['action'];
/** What a condition observes: nothing, something unreadable, or values of a kind. */
type Seen = 'absent' | 'unreadable' | { readonly kind: Kind; readonly values: readonly unknown[] };
interface Parameter {
  readonly name?: string;
  readonly type: string;
  readonly components?: readonly Parameter[];
}

/**
 * An independent implementation of src/engine/policy/README.md, simple and slow: it parses everything for every evaluation
 * and shares only types with the engine. It assumes that the rules compile.
 */
export function oracleAllows(rules: readonly RuleInput[], action: PolicyAction, world: World): boolean {
  const applying = rules.filter(
    ({ method, action: effect }) =>
      method === action.method || (method === '*' && (effect === 'DENY' || action.isNamedOnly !== true)),
  );
  const unitIsAllowed = (unit: ActionUnit): boolean => {
    const truths = (effect: string): Truth[] =>
      applying.filter((rule) => rule.action === effect).map((rule) => truthOfRule(rule, unit, world));
    return truths('DENY').every((truth) => truth === 'false') && truths('ALLOW').includes('true');
  };
  return action.units.length > 0 && action.units.every(unitIsAllowed);
}

/** The result of each condition of a rule for a unit. */
export function oracleTruths(rule: RuleInput, unit: ActionUnit, world: World): Truth[] {
  return rule.conditions.map((condition): Truth => {
    const seen = read(condition, unit, world, rule.action);
    if (seen === 'unreadable') return 'unknown';
    if (seen === 'absent') return 'false';
    const holds = seen.values.map((value) => satisfies(condition, seen.kind, String(value), world));
    return (rule.action === 'ALLOW' ? holds.every(Boolean) : holds.some(Boolean)) ? 'true' : 'false';
  });
}

function truthOfRule(rule: RuleInput, unit: ActionUnit, world: World): Truth {
  const truths = oracleTruths(rule, unit, world);
  return truths.includes('false') ? 'false' : truths.includes('unknown') ? 'unknown' : 'true';
}

/** What a unit adds to a running total and in which group; `unreadable` if either is unknown. */
export interface Addition {
  readonly amount: bigint | 'unreadable';
  readonly group: string;
}

/** What an action adds to an aggregation: the units that count, each with its amount. */
export function oracleAdditions(
  { method, metric, group_by = [], conditions = [] }: AggregationDefinition,
  action: PolicyAction,
  world: World,
): Addition[] {
  if (action.method !== method) return [];
  // As a DENY rule reads it: what is valid on any chain, or may pay any account, leaves no total.
  const counts = (unit: ActionUnit): boolean =>
    conditions.every((condition) => {
      const seen = read(condition, unit, world, 'DENY');
      if (typeof seen === 'string') return seen === 'unreadable';
      return seen.values.some((value) => satisfies(condition, seen.kind, String(value), world));
    });
  return action.units.filter(counts).map((unit) => {
    const [sum, ...own] = [metric, ...group_by].map((field) => read(field as Condition, unit, world, 'DENY'));
    const spelled = own.map((seen) =>
      typeof seen === 'string' ? 0 : seen.values.map((value) => String(meaning(seen.kind, String(value)))),
    );
    const group = JSON.stringify(spelled);
    if (sum === undefined || sum === 'unreadable' || own.includes('unreadable'))
      return { amount: 'unreadable', group };
    const amounts = sum === 'absent' ? [] : sum.values.map((value) => BigInt(String(value)));
    return { amount: amounts.filter((one) => one > 0n).reduce((total, one) => total + one, 0n), group };
  });
}

/** What a condition observes; a value of another kind makes all of it unreadable. */
function read(condition: Condition, unit: ActionUnit, world: World, effect: Effect): Seen {
  const seen = look(condition, unit, world, effect);
  if (typeof seen === 'string') return seen;
  if (seen.values.length === 0) return 'absent';
  return seen.values.every((value) => isOfKind(seen.kind, value)) ? seen : 'unreadable';
}

const SHAPES: Readonly<Record<Kind, RegExp>> = {
  number: /^(-?\d{1,100}|0x[\da-f]{1,64})$/i,
  decimal: /^\d{1,100}(\.\d{1,100})?$/,
  boolean: /^(true|false)$/,
  evm: /^0x[\da-f]{40}$/i,
  tron: /^41[\da-f]{40}$/i,
  sui: /^0x[\da-f]{1,64}$/i,
  bytes: /^0x([\da-f]{2})*$/i,
  account: /^/,
  xrpl: /^/,
  currency: /^/,
  text: /^/,
};

function isOfKind(kind: Kind, value: unknown): boolean {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return false;
  const types =
    kind === 'boolean' ? ['boolean'] : kind === 'number' ? ['string', 'number', 'bigint'] : ['string'];
  return types.includes(typeof value) && SHAPES[kind].test(String(value));
}

/** A value in canonical form: numbers as numbers, accounts as accounts. */
function meaning(kind: Kind, text: string): string | bigint {
  if (kind === 'number' || kind === 'sui') return BigInt(text);
  if (kind === 'tron') return TronWeb.address.toHex(text).toLowerCase();
  if (kind === 'account') return meaning(kindOfAccount(text), text);
  if (kind === 'xrpl') return isValidXAddress(text) ? xAddressToClassicAddress(text).classicAddress : text;
  if (kind === 'currency') return meaningOfCurrency(text);
  if (kind === 'evm' || kind === 'bytes') return text.toLowerCase();
  if (kind !== 'decimal') return text;
  const [whole, fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(100, '0'));
}

/** The 20 bytes of a currency; other text stands for itself. */
function meaningOfCurrency(text: string): string {
  if (/^[\da-f]{40}$/i.test(text)) return text.toUpperCase();
  return text.length === 3
    ? `${'0'.repeat(24)}${Buffer.from(text).toString('hex')}0000000000`.toUpperCase()
    : text;
}

function kindOfAccount(text: string): Kind {
  if (SHAPES.evm.test(text)) return 'evm';
  return SHAPES.tron.test(text) || TronWeb.isAddress(text) ? 'tron' : 'text';
}

function satisfies({ operator, value }: Condition, kind: Kind, seen: string, world: World): boolean {
  const own = meaning(kind, seen);
  if (operator === 'in_condition_set') return isInSet(kind, seen, world.sets[value as string] ?? []);
  if (operator === 'in') return (value as readonly string[]).some((text) => meaning(kind, text) === own);
  const given = meaning(kind, value as string);
  if (operator === 'eq') return own === given;
  if (operator === 'neq') return own !== given;
  if (operator === 'gt') return own > given;
  if (operator === 'gte') return own >= given;
  if (operator === 'lt') return own < given;
  if (operator === 'lte') return own <= given;
  if (operator === 'contains') return String(own).includes(String(given));
  return operator === 'starts_with'
    ? String(own).startsWith(String(given))
    : String(own).endsWith(String(given));
}

function isInSet(kind: Kind, seen: string, items: readonly string[]): boolean {
  if (kind === 'account') return isInSet(kindOfAccount(seen), seen, items);
  return items.some((item) => {
    if (kind === 'tron') return TronWeb.isAddress(item) && meaning(kind, item) === meaning(kind, seen);
    return SHAPES[kind].test(item) && meaning(kind, item) === meaning(kind, seen);
  });
}

const one = (kind: Kind, value: unknown): Seen => (value == null ? 'absent' : { kind, values: [value] });

function account(value: SolanaAccount | bigint): Seen {
  return typeof value === 'object' ? 'unreadable' : one(typeof value === 'bigint' ? 'number' : 'text', value);
}

/** A value that is missing for a DENY may still be present when the signature is used. */
const orUnknown = (effect: Effect, seen: Seen): Seen =>
  effect === 'DENY' && seen === 'absent' ? 'unreadable' : seen;

function look(condition: Condition, unit: ActionUnit, world: World, effect: Effect): Seen {
  const { field_source: source, field } = condition;
  if (source === 'system') return one('number', Math.floor(world.nowMs / 1000));
  if (source === 'reference') {
    const total = world.totals[field.slice('aggregation.'.length)];
    return total === 'unreadable' ? total : orUnknown(effect, one('number', total));
  }
  if (source === 'action_request_body') return lookAtBody(field, unit.requestBody, effect);
  if (unit.undecodable !== undefined) return 'unreadable';
  switch (source) {
    case 'ethereum_transaction': {
      if (unit.ethereumCall === undefined) return 'absent';
      const { to, value, chainId } = unit.ethereumCall;
      if (field === 'to') return orUnknown(effect, one('evm', to));
      return orUnknown(effect, one('number', field === 'value' ? value : chainId));
    }
    case 'ethereum_calldata':
      return lookAtCalldata(condition, unit.ethereumCall?.data);
    case 'tron_trigger_smart_contract_data':
      return lookAtCalldata(condition, unit.tronContract?.data);
    case 'ethereum_typed_data_domain':
      if (unit.typedData === undefined) return 'absent';
      return orUnknown(
        effect,
        field.startsWith('chain')
          ? one('number', unit.typedData.domain.chainId)
          : one('evm', unit.typedData.domain.verifyingContract),
      );
    case 'ethereum_typed_data_message':
      return lookAtTypedMessage(condition, unit.typedData, effect);
    case 'ethereum_7702_authorization':
      return one('evm', unit.authorization7702?.contract);
    case 'tempo_transaction':
      return lookAtTempo(field, unit.tempo);
    case 'solana_program_instruction':
      return unit.solanaInstruction === undefined ? 'absent' : account(unit.solanaInstruction.programId);
    case 'solana_system_program_instruction':
      return lookAtInstruction('system', condition, unit.solanaInstruction, 'ALLOW');
    case 'solana_token_program_instruction':
      return lookAtInstruction('token', condition, unit.solanaInstruction, effect);
    case 'tron_transaction': {
      const [type = '', member = ''] = field.split('.');
      if (unit.tronContract?.type !== type) return 'absent';
      return one(member.endsWith('address') ? 'tron' : 'number', unit.tronContract.fields[member]);
    }
    case 'xrpl_transaction':
      return lookAtXrpl(field, unit.xrplTransaction);
    case 'sui_transaction_command':
    case 'sui_transfer_objects_command':
      return lookAtSui(field, unit.suiCommands ?? []);
    case 'message':
      return lookAtMessage(field, unit.messageBytes);
    default:
      throw new Error(`the oracle does not know ${source}`);
  }
}

function lookAtMessage(field: string, bytes: Uint8Array | undefined): Seen {
  if (bytes === undefined || field === 'byte_length') return one('number', bytes?.length);
  const text = Buffer.from(bytes).toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? one('text', text) : 'unreadable';
}

function lookAtBody(field: string, body: unknown, effect: Effect): Seen {
  let found = body;
  for (const step of field.split('.')) found = (found as Record<string, unknown> | null | undefined)?.[step];
  const isAccount = /address$/.test(field) && effect === 'DENY';
  return one(field.endsWith('amount') ? 'decimal' : isAccount ? 'account' : 'text', found);
}

function lookAtTempo(field: string, tempo: ActionUnit['tempo']): Seen {
  if (field === 'fee_token') return one('evm', tempo?.feeToken);
  if (field === 'fee_payer_signature') return one('boolean', tempo?.hasFeePayerSignature);
  if (field === 'nonce_key') return one('number', tempo?.nonceKey);
  return one('number', field === 'valid_before' ? tempo?.validBefore : tempo?.validAfter);
}

/** The two instructions that move tokens; a DENY treats them as one. */
const TRANSFERS = ['Transfer', 'TransferChecked'];

function lookAtInstruction(
  program: string,
  { field, operator }: Condition,
  instruction: ActionUnit['solanaInstruction'],
  effect: Effect,
): Seen {
  if (instruction === undefined) return 'absent';
  if (typeof instruction.programId !== 'string') return 'unreadable';
  if (instruction.program !== program) return 'absent';
  if (instruction.name === undefined) return 'unreadable';
  const isEither = effect === 'DENY' && TRANSFERS.includes(instruction.name);
  if (field === 'instructionName')
    return { kind: 'text', values: isEither && operator !== 'neq' ? TRANSFERS : [instruction.name] };
  const [name = '', member = ''] = field.split('.');
  if (name !== instruction.name && !(isEither && TRANSFERS.includes(name))) return 'absent';
  const value = instruction.fields[member];
  return value === undefined ? 'unreadable' : account(value);
}

function lookAtXrpl(field: string, transaction: Readonly<Record<string, unknown>> | undefined): Seen {
  const [type, member = '', part] = field.split('.');
  if (transaction === undefined) return 'absent';
  if (typeof transaction.TransactionType !== 'string') return 'unreadable';
  if (member === '') return one('text', transaction.TransactionType);
  const value = transaction[member];
  if (transaction.TransactionType !== type || value === undefined) return 'absent';
  if (value === null) return 'unreadable';
  if (part === undefined) return one(member === 'Destination' ? 'xrpl' : 'number', value);
  const isNative = typeof value === 'string';
  if (!isNative && typeof value !== 'object') return 'unreadable';
  if (isNative !== (part === 'drops')) return 'absent';
  if (isNative) return one('number', value);
  const kinds = { value: 'decimal', currency: 'currency', issuer: 'xrpl' } as const;
  return one(kinds[part as keyof typeof kinds], (value as Record<string, unknown>)[part] ?? Number.NaN);
}

function lookAtSui(field: string, commands: NonNullable<ActionUnit['suiCommands']>): Seen {
  if (commands.some(({ name }) => name === undefined)) return 'unreadable';
  if (field === 'commandName') return { kind: 'text', values: commands.map(({ name }) => name) };
  const transfers = commands.filter(({ name }) => name === 'TransferObjects');
  return field === 'amount'
    ? { kind: 'number', values: transfers.map(({ amount }) => amount) }
    : { kind: 'sui', values: transfers.map(({ recipient }) => recipient) };
}

function kindOfType(type: string): Kind {
  if (type.includes('int')) return 'number';
  if (type === 'bool') return 'boolean';
  return type === 'address' ? 'evm' : type.startsWith('bytes') ? 'bytes' : 'text';
}

function lookAtCalldata({ abi, field }: Condition, data: Uint8Array | undefined): Seen {
  if (data === undefined || data.length < 4) return 'absent';
  const dataHex = toHex(data);
  const functions = (abi as readonly AbiFunction[])
    .filter(({ type }) => type === 'function')
    .map((item) => ({ ...item, inputs: item.inputs ?? [] }));
  const called = functions.find((item) => toFunctionSelector(item) === dataHex.slice(0, 10));
  if (called === undefined) return 'absent';
  const unnamed = [{ ...called, inputs: withoutNames(called.inputs as readonly Parameter[]) }];
  let args: readonly unknown[];
  try {
    args = decodeFunctionData({ abi: unnamed, data: dataHex }).args ?? [];
    if (encodeFunctionData({ abi: unnamed, args } as never) !== dataHex) return 'unreadable';
  } catch {
    return 'unreadable';
  }
  if (field === 'function_name' || functions.some(({ name }) => name === field))
    return one('text', called.name);
  const [name, ...path] = field.split('.');
  if (name !== called.name) return 'absent';
  return lookIntoTuple(called.inputs as readonly Parameter[], args, path);
}

function withoutNames(parameters: readonly Parameter[]): AbiFunction['inputs'] {
  return parameters.map(({ type, components }) => ({
    type,
    ...(components && { components: withoutNames(components) }),
  }));
}

function lookIntoTuple(
  parameters: readonly Parameter[],
  values: unknown,
  [head, ...path]: readonly string[],
): Seen {
  const position = parameters.findIndex(({ name }, index) => (name || String(index)) === head);
  const parameter = parameters[position];
  if (parameter === undefined) return 'absent';
  return lookInto(parameter, parameter.type, (values as readonly unknown[])[position], path);
}

function lookInto(parameter: Parameter, type: string, value: unknown, path: readonly string[]): Seen {
  if (type.endsWith(']')) {
    const inner = type.slice(0, type.lastIndexOf('['));
    const elements = value as readonly unknown[];
    const picks = /^\d+$/.test(path[0] ?? '');
    const chosen = picks ? elements.slice(Number(path[0]), Number(path[0]) + 1) : elements;
    const seen = chosen.map((element) => lookInto(parameter, inner, element, picks ? path.slice(1) : path));
    const found = seen.filter((one) => typeof one === 'object');
    return found[0] === undefined ? 'absent' : { ...found[0], values: found.flatMap(({ values }) => values) };
  }
  if (type === 'tuple') return lookIntoTuple(parameter.components ?? [], value, path);
  return { kind: kindOfType(type), values: [value] };
}

function lookAtTypedMessage(
  { field, typed_data: declared }: Condition,
  typedData: ActionUnit['typedData'],
  effect: Effect,
): Seen {
  if (declared === undefined || typedData === undefined) return 'absent';
  const spell = (types: object): string =>
    JSON.stringify(
      Object.entries(types)
        .map(([name, members]) => [name, members.map((member: Parameter) => [member.name, member.type])])
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  const { types, primaryType, message } = typedData;
  const wanted = declared.primary_type;
  if (effect === 'ALLOW' && wanted !== primaryType) return 'absent';
  const used = (map: TypeMap): object => (effect === 'ALLOW' ? map : structsBelow(map, wanted));
  if (spell(used(declared.types)) !== spell(used(types))) return 'absent';
  const structs = effect === 'ALLOW' ? [message] : structsOfType(types, primaryType, message, wanted);
  const seen = structs.map((struct) =>
    struct === 'unreadable' ? struct : lookIntoStruct(types, wanted, struct, field.split('.')),
  );
  if (seen.includes('unreadable')) return 'unreadable';
  const found = seen.filter((one) => typeof one === 'object');
  return found[0] === undefined ? 'absent' : { ...found[0], values: found.flatMap(({ values }) => values) };
}

/** Every value of a struct type in a message; `unreadable` for each place where one could be and is not. */
function structsOfType(types: TypeMap, type: string, value: unknown, wanted: string): unknown[] {
  if (!(wanted in structsBelow(types, type.replace(/\[.*$/, '')))) return [];
  if (type.endsWith(']')) {
    const inner = type.slice(0, type.lastIndexOf('['));
    return Array.isArray(value)
      ? value.flatMap((element) => structsOfType(types, inner, element, wanted))
      : ['unreadable'];
  }
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return ['unreadable'];
  const own = (types[type] ?? []).flatMap((member) =>
    structsOfType(types, member.type, (value as Record<string, unknown>)[member.name ?? ''], wanted),
  );
  return type === wanted ? [value, ...own] : own;
}

type TypeMap = Readonly<Record<string, readonly Parameter[]>>;

/** A struct and all structs that it refers to. */
function structsBelow(types: TypeMap, name: string, found: Record<string, readonly Parameter[]> = {}) {
  const members = types[name];
  if (members === undefined || name in found) return found;
  found[name] = members;
  for (const { type } of members) structsBelow(types, type.replace(/\[.*$/, ''), found);
  return found;
}

function lookIntoStruct(types: TypeMap, type: string, value: unknown, path: readonly string[]): Seen {
  if (type.endsWith(']')) {
    if (!Array.isArray(value)) return 'unreadable';
    const inner = type.slice(0, type.lastIndexOf('['));
    const picks = /^\d+$/.test(path[0] ?? '');
    const chosen = picks ? value.slice(Number(path[0]), Number(path[0]) + 1) : value;
    const seen = chosen.map((element) => lookIntoStruct(types, inner, element, picks ? path.slice(1) : path));
    if (seen.includes('unreadable')) return 'unreadable';
    const found = seen.filter((one) => typeof one === 'object');
    return found[0] === undefined ? 'absent' : { ...found[0], values: found.flatMap(({ values }) => values) };
  }
  const members = types[type];
  if (members === undefined) return { kind: kindOfType(type), values: [value] };
  const member = members.find(({ name }) => name === path[0]);
  if (member === undefined || typeof value !== 'object' || value === null) return 'unreadable';
  return lookIntoStruct(types, member.type, (value as Record<string, unknown>)[path[0] ?? ''], path.slice(1));
}
