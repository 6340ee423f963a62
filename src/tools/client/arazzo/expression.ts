import { parsePath, valueAt } from '../../../sandbox/events.ts';

/** A request and its response, in the form in which expressions read them. */
export interface Exchange {
  readonly url: string;
  readonly method: string;
  readonly request: Message & {
    readonly path: Readonly<Record<string, unknown>>;
    readonly query: Readonly<Record<string, unknown>>;
  };
  /** The status. 0 means that the connection was closed without a response. */
  readonly status: number;
  readonly response: Message;
}

interface Message {
  /** Headers with names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

type Outputs = Readonly<Record<string, unknown>>;

/** The values that expressions can refer to. */
export interface Scope {
  readonly inputs: Readonly<Record<string, unknown>>;
  /** The outputs of each step of this workflow, and of each workflow. */
  readonly steps: ReadonlyMap<string, Outputs>;
  readonly workflows: ReadonlyMap<string, { readonly inputs: Outputs; readonly outputs: Outputs }>;
  readonly sources: Readonly<Record<string, unknown>>;
  readonly exchange?: Exchange | undefined;
  /** The outputs of the workflow that the step has run; undefined for other steps. */
  readonly outputs?: Outputs | undefined;
}

const expressionStart =
  /^\$(url|method|statusCode|(request|response|inputs|outputs|steps|workflows|sourceDescriptions)\.)/;

/** Returns whether a string is a runtime expression, which its beginning shows (Arazzo 1.0.1, section 4.7). */
function isExpression(text: string): boolean {
  return expressionStart.test(text);
}

/** Returns the value of an expression, or undefined if it has none. */
export function evaluate(expression: string, scope: Scope): unknown {
  const { exchange } = scope;
  if (expression === '$url') return exchange?.url;
  if (expression === '$method') return exchange?.method;
  if (expression === '$statusCode') return exchange?.status;
  const [, root = '', rest = ''] = /^\$(\w+)\.(.*)$/s.exec(expression) ?? [];
  if (root === 'request') return ofMessage(rest, exchange?.request, exchange?.request);
  if (root === 'response') return ofMessage(rest, exchange?.response);
  if (root === 'inputs') return lookUp(scope.inputs, rest);
  if (root === 'outputs') return lookUp(scope.outputs, rest);
  if (root === 'sourceDescriptions') return lookUp(scope.sources, rest);
  const [, id = '', part = '', name = ''] = /^([\w-]+)\.(outputs|inputs)\.(.*)$/s.exec(rest) ?? [];
  if (root === 'steps') return lookUp(scope.steps.get(id), name);
  return lookUp(scope.workflows.get(id)?.[part === 'inputs' ? 'inputs' : 'outputs'], name);
}

function ofMessage(rest: string, message: Message | undefined, request?: Exchange['request']): unknown {
  const [, part, name = ''] = /^(header|query|path)\.(.*)$/s.exec(rest) ?? [];
  if (part === 'header') return message?.headers[name.toLowerCase()];
  if (part === 'query') return request?.query[name];
  if (part === 'path') return request?.path[name];
  const [, inBody] = /^body(.*)$/s.exec(rest) ?? [];
  if (inBody === undefined) return undefined;
  if (inBody === '' || inBody === '#') return message?.body;
  return lookUp(message?.body, inBody);
}

/**
 * Returns the value at `#/a/b`, `a.b[0]`, or `name#/a/b`. Names of outputs may contain dots, so the longest name that
 * exists is used.
 */
function lookUp(value: unknown, path: string): unknown {
  if (path === '' || value === undefined) return value;
  if (path.startsWith('#/')) {
    const found = valueAt(value, parsePath(path.slice(1)));
    return found === undefined ? throughBrackets(value, path) : found;
  }
  const rest = path.replace(/^\./, '');
  const [, index, afterIndex = ''] = /^\[(\d+)\](.*)$/s.exec(rest) ?? [];
  if (index !== undefined) return lookUp(valueAt(value, [index]), afterIndex);
  for (let end = rest.length; end > 0; end -= 1) {
    if (end < rest.length && !'.[#'.includes(rest[end]!)) continue;
    const found = valueAt(value, [rest.slice(0, end)]);
    if (found !== undefined) return lookUp(found, rest.slice(end));
  }
  return undefined;
}

/** Resolves `#/data[0].id`: a JSON pointer, followed by the operators `[0]` and `.id` that conditions use. */
function throughBrackets(value: unknown, pointer: string): unknown {
  const mark = pointer.slice(2).search(/[.[]/);
  if (mark === -1) return undefined;
  return lookUp(valueAt(value, parsePath(pointer.slice(1, mark + 2))), pointer.slice(mark + 2));
}

/** Thrown when an expression in a request has no value. */
export class NoValueError extends Error {
  constructor(expression: string) {
    super(`\`${expression}\` has no value`);
    this.name = 'NoValueError';
  }
}

/**
 * Returns a copy of `value` with its expressions replaced. A string that is an expression as a whole gets the type of
 * the expression's value. `{$inputs.name}` inside a string is replaced by text.
 *
 * @throws NoValueError
 */
export function fill(value: unknown, scope: Scope): unknown {
  if (typeof value === 'string') return fillText(value, scope);
  if (Array.isArray(value)) return value.map((item) => fill(item, scope));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fill(item, scope)]));
}

function fillText(text: string, scope: Scope): unknown {
  const required = (expression: string): unknown => {
    const found = evaluate(expression, scope);
    if (found === undefined) throw new NoValueError(expression);
    return found;
  };
  if (isExpression(text)) return required(text);
  return text.replaceAll(/\{(\$[^{}]+)\}/g, (whole, expression: string) =>
    isExpression(expression) ? asText(required(expression)) : whole,
  );
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Thrown when a condition is not one of Arazzo's simple conditions. */
export class InvalidConditionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidConditionError';
  }
}

type Evaluated = (scope: Scope) => unknown;

/** A parsed condition: a function that evaluates it, and the expressions in it. */
interface Condition {
  readonly holds: (scope: Scope) => boolean;
  readonly expressions: readonly string[];
}

const token =
  /\s*(?:(?<operator>&&|\|\||==|!=|<=|>=|[<>!()])|'(?<quoted>(?:[^']|'')*)'|(?<expression>\$[^\s()=!<>&|']+)|(?<word>[^\s()=!<>&|']+))/y;

/** A token of a condition. Its kind is the name of a group in the regular expression `token`. */
interface Token {
  readonly kind: string;
  readonly text: string;
}

/**
 * Parses a simple condition (Arazzo 1.0.1, section 4.6.11.1): `==`, `!=`, `<`, `<=`, `>`, `>=`, `!`, `&&`, `||` and
 * parentheses between runtime expressions, numbers, `'text'`, `true`, `false` and `null`.
 *
 * @throws InvalidConditionError
 */
export function parseCondition(source: string): Condition {
  const tokens = readTokens(source);
  let position = 0;
  const next = (...texts: readonly string[]): string | undefined => {
    const found = tokens[position];
    if (found?.kind !== 'operator' || !texts.includes(found.text)) return undefined;
    position += 1;
    return found.text;
  };
  const chain = (part: () => Evaluated, operator: '&&' | '||'): Evaluated => {
    const parts = [part()];
    while (next(operator) !== undefined) parts.push(part());
    if (parts.length === 1) return parts[0]!;
    return operator === '&&'
      ? (scope) => parts.every((each) => isTrue(each(scope)))
      : (scope) => parts.some((each) => isTrue(each(scope)));
  };
  const either = (): Evaluated => chain(both, '||');
  const both = (): Evaluated => chain(comparison, '&&');
  const comparison = (): Evaluated => {
    const left = operand();
    const operator = next('==', '!=', '<=', '>=', '<', '>');
    if (operator === undefined) return left;
    const right = operand();
    return (scope) => compare(left(scope), operator, right(scope));
  };
  const operand = (): Evaluated => {
    if (next('!') !== undefined) {
      const negated = operand();
      return (scope) => !isTrue(negated(scope));
    }
    if (next('(') !== undefined) {
      const inner = either();
      if (next(')') === undefined) throw new InvalidConditionError('expected `)`');
      return inner;
    }
    const found = tokens[position];
    if (found === undefined || found.kind === 'operator')
      throw new InvalidConditionError(
        `expected a value, got ${found === undefined ? 'the end' : `\`${found.text}\``}`,
      );
    position += 1;
    return operandOf(found);
  };
  const whole = either();
  if (position < tokens.length)
    throw new InvalidConditionError(`expected an operator, got \`${tokens[position]!.text}\``);
  return {
    holds: (scope) => isTrue(whole(scope)),
    expressions: tokens.filter(({ kind }) => kind === 'expression').map(({ text }) => text),
  };
}

function readTokens(source: string): Token[] {
  const tokens: Token[] = [];
  const text = source.trim();
  token.lastIndex = 0;
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const [kind, found] =
      Object.entries(token.exec(text)?.groups ?? {}).find(([, value]) => value !== undefined) ?? [];
    if (kind === undefined || found === undefined)
      throw new InvalidConditionError(`expected a value or an operator, got \`${text.slice(at)}\``);
    tokens.push({ kind, text: found });
  }
  return tokens;
}

function operandOf({ kind, text }: Token): Evaluated {
  if (kind === 'quoted') return () => text.replaceAll("''", "'");
  if (kind === 'expression') {
    if (isExpression(text)) return (scope) => evaluate(text, scope);
    throw new InvalidConditionError(`expected a runtime expression, got \`${text}\``);
  }
  const literals: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
  if (Object.hasOwn(literals, text)) return () => literals[text];
  const number = Number(text);
  if (Number.isNaN(number))
    throw new InvalidConditionError(`expected a number, \`'text'\`, true, false or null, got \`${text}\``);
  return () => number;
}

/**
 * Compares two values. Strings are compared without regard to case. A number and a string that contains a number are
 * compared as numbers.
 */
function compare(left: unknown, operator: string, right: unknown): boolean {
  const [a, b] = comparable(left, right);
  if (operator === '==') return a === b;
  if (operator === '!=') return a !== b;
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false;
  const [x, y] = [a as number, b as number];
  if (operator === '<') return x < y;
  if (operator === '<=') return x <= y;
  return operator === '>' ? x > y : x >= y;
}

function comparable(left: unknown, right: unknown): [unknown, unknown] {
  if (typeof left === 'string' && typeof right === 'string') return [left.toLowerCase(), right.toLowerCase()];
  if (typeof left === 'number' && isNumeric(right)) return [left, Number(right)];
  if (typeof right === 'number' && isNumeric(left)) return [Number(left), right];
  return [left, right];
}

function isNumeric(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '' && !Number.isNaN(Number(value));
}

function isTrue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== '' && value !== 0;
}
