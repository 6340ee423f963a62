import {
  type Condition,
  declarationOf,
  fieldsOf,
  methodsOf,
  operatorsOf,
  prefixOf,
  sourcesOf,
} from './conditions.ts';

/** A rule while it is edited. `id` is set if the rule is stored. */
export interface Rule {
  readonly id?: string;
  readonly name: string;
  readonly method: string;
  readonly action: string;
  readonly conditions: readonly Condition[];
}

/** A policy while it is edited. */
export interface Draft {
  readonly name: string;
  readonly chain_type: string;
  readonly rules: readonly Rule[];
}

/** An error from the server about a part of a draft. `pointer` is relative to the draft. */
export interface Issue {
  readonly pointer: string;
  readonly message: string;
}

/** The draft of a new policy. It allows only polite messages. */
export const firstDraft: Draft = {
  name: 'New policy',
  chain_type: 'ethereum',
  rules: [
    {
      name: 'Polite messages',
      method: 'personal_sign',
      action: 'ALLOW',
      conditions: [{ field_source: 'message', field: 'content', operator: 'starts_with', value: 'Please' }],
    },
  ],
};

/** Returns the parts of a stored policy that can be edited. */
export function draftOf({
  name,
  chain_type,
  rules,
}: {
  readonly name: string;
  readonly chain_type: string;
  readonly rules: readonly unknown[];
}): Draft {
  return { name, chain_type, rules: rules as readonly Rule[] };
}

export function draftText(draft: Draft): string {
  return JSON.stringify(draft, null, 2);
}

/**
 * Parses the text of an edited policy. Checks only the structure that the rule editor needs; the server checks the
 * rest.
 *
 * @throws Error, which names the place.
 */
export function readDraft(text: string): Draft {
  const { name, chain_type: chainType, rules, ...others } = readObject(text, 'the policy');
  const [other] = Object.keys(others).filter((each) => each !== 'version');
  if (other !== undefined)
    throw new Error(`expected \`name\`, \`chain_type\` and \`rules\`, got \`${other}\``);
  return {
    name: requireText(name, 'name'),
    chain_type: requireText(chainType, 'chain_type'),
    rules: requireList(rules, 'rules').map((rule, index) => readRule(rule, `rules[${index}]`)),
  };
}

function readRule(value: unknown, at: string): Rule {
  const { id, name, method, action, conditions, ...others } = requireObject(value, at);
  requireNoOther(others, at);
  return {
    ...(id === undefined ? {} : { id: requireText(id, `${at}.id`) }),
    name: requireText(name, `${at}.name`),
    method: requireText(method, `${at}.method`),
    action: requireText(action, `${at}.action`),
    conditions: requireList(conditions, `${at}.conditions`).map((each, index) =>
      readCondition(each, `${at}.conditions[${index}]`),
    ),
  };
}

function readCondition(value: unknown, at: string): Condition {
  const {
    field_source: source,
    field,
    operator,
    value: compared,
    abi,
    typed_data: typed,
    ...others
  } = requireObject(value, at);
  requireNoOther(others, at);
  return {
    field_source: requireText(source, `${at}.field_source`),
    field: requireText(field, `${at}.field`),
    operator: requireText(operator, `${at}.operator`),
    value: Array.isArray(compared)
      ? compared.map((each, index) => requireText(each, `${at}.value[${index}]`))
      : requireText(compared, `${at}.value`),
    ...(abi === undefined ? {} : { abi }),
    ...(typed === undefined ? {} : { typed_data: typed }),
  };
}

/**
 * Parses the text of a JSON object.
 *
 * @throws Error for any other text. The message uses `what` as the object's name.
 */
export function readObject(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  return requireObject(value, what);
}

function requireObject(value: unknown, at: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new Error(`expected ${at} to be a JSON object, got \`${shown(value)}\``);
}

function requireList(value: unknown, at: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`expected ${at} to be a list, got \`${shown(value)}\``);
}

function requireText(value: unknown, at: string): string {
  if (typeof value === 'string') return value;
  throw new Error(`expected ${at} to be a text, got \`${shown(value)}\``);
}

function requireNoOther(others: object, at: string): void {
  const [other] = Object.keys(others);
  if (other !== undefined) throw new Error(`${at} has an unknown member \`${other}\``);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'undefined').slice(0, 100);
}

/** Returns an initial condition for a rule: the first field of the first source that fits. */
export function newCondition(chainType: string, method: string): Condition {
  const [source = 'system'] = sourcesOf(chainType, method);
  return withSource({ field_source: source, field: '', operator: 'eq', value: '' }, source);
}

export function newRule({ chain_type: chainType, rules }: Draft): Rule {
  const [method = '*'] = methodsOf(chainType);
  return { name: `Rule ${rules.length + 1}`, method, action: 'ALLOW', conditions: [] };
}

/** Changes the field source. The field becomes the first one of the new source. */
export function withSource({ value }: Condition, source: string): Condition {
  const declaration = declarationOf(source);
  const condition: Condition = {
    ...{ field_source: source, field: '', operator: 'eq', value },
    ...(declaration === 'abi' ? { abi: exampleAbi } : {}),
    ...(declaration === 'typed_data' ? { typed_data: exampleTypes } : {}),
  };
  return withField(condition, Object.keys(fieldsOf(condition))[0] ?? prefixOf(source) ?? '');
}

/** Changes the field. If the operator does not fit the new field, it becomes the first operator that does. */
export function withField(condition: Condition, field: string): Condition {
  const changed = { ...condition, field };
  const operators = operatorsOf(changed);
  return withOperator(changed, operators.includes(changed.operator) ? changed.operator : operators[0]!);
}

/**
 * Changes the operator. For `in`, the value becomes a list; for other operators, it becomes the first value of the
 * list.
 */
export function withOperator(condition: Condition, operator: string): Condition {
  const { value } = condition;
  const values = [value].flat();
  return { ...condition, operator, value: operator === 'in' ? values : (values[0] ?? '') };
}

export const exampleAbi = [
  {
    ...{ type: 'function', name: 'transfer', stateMutability: 'nonpayable' },
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
];

const exampleTypes = {
  primary_type: 'Message',
  types: { Message: [{ name: 'contents', type: 'string' }] },
};

/** Returns a copy of the list in which an item is replaced, or removed if no new item is given. */
export function replaced<Item>(list: readonly Item[], index: number, item?: Item): readonly Item[] {
  return list.flatMap((each, place) => (place !== index ? [each] : item === undefined ? [] : [item]));
}

/** Moves an item of a list up (-1) or down (1). */
export function moved<Item>(list: readonly Item[], index: number, step: -1 | 1): readonly Item[] {
  const other = index + step;
  if (other < 0 || other >= list.length) return list;
  return list.map((each, place) => (place === index ? list[other]! : place === other ? list[index]! : each));
}

/** Returns the body that creates the policy. */
export function createBody(draft: Draft): { version: '1.0' } & Draft {
  return { version: '1.0', ...draft, rules: draft.rules.map(withoutId) };
}

/** Returns the body that changes a stored policy. The rules in it have no ids. */
export function updateBody({ name, rules }: Draft): { name: string; rules: readonly Rule[] } {
  return { name, rules: rules.map(withoutId) };
}

function withoutId({ id: _, ...rule }: Rule): Rule {
  return rule;
}

/** Returns the part of a draft that the server explains, lints and replays. */
export function judgedPart({ chain_type, rules }: Draft): {
  chain_type: string;
  rules: Record<string, unknown>[];
} {
  return { chain_type, rules: rules.map((rule) => ({ ...rule })) };
}

/** Returns the errors about one part of a draft, such as `/rules/0`, or about anything inside it. */
export function issuesAt(issues: readonly Issue[], at: string): readonly Issue[] {
  return issues.filter(({ pointer }) => pointer === at || pointer.startsWith(`${at}/`));
}

/**
 * Returns an error response's problems with pointers relative to the draft. An error without a pointer is about the
 * whole draft.
 */
export function draftIssues(
  error: { readonly message: string; readonly issues?: readonly Issue[] },
  member: '/policy' | '/draft' | '',
): readonly Issue[] {
  const { issues = [] } = error;
  if (issues.length === 0) return [{ pointer: '', message: error.message }];
  return issues.map(({ pointer, message }) => ({
    pointer: pointer.startsWith(`${member}/`) ? pointer.slice(member.length) : pointer,
    message,
  }));
}
