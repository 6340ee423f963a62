import { evaluate, isExpression, type Scope } from './expression.ts';

/** The condition is not one of Arazzo's simple conditions. */
export class InvalidConditionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidConditionError';
  }
}

type Evaluated = (scope: Scope) => unknown;

/** A parsed condition: whether it holds, and the expressions in it. */
export interface Condition {
  readonly holds: (scope: Scope) => boolean;
  readonly expressions: readonly string[];
}

const token =
  /\s*(?:(?<operator>&&|\|\||==|!=|<=|>=|[<>!()])|'(?<quoted>(?:[^']|'')*)'|(?<expression>\$[^\s()=!<>&|']+)|(?<word>[^\s()=!<>&|']+))/y;

/** A part of a condition, with its kind as in `token`. */
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

/** Texts are compared without regard to case; a number and the text of a number are compared as numbers. */
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
