import { printParseErrorCode, visit } from 'jsonc-parser';

/** Where a text stops being JSON. */
export interface JsonFault {
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

class FaultFoundError extends Error {
  readonly fault: JsonFault;
  constructor(fault: JsonFault) {
    super(fault.expected);
    this.fault = fault;
  }
}

/** Errors inside a token, whose position is the start of the token. */
const insideTokens: Readonly<Record<string, string>> = {
  InvalidUnicode: 'four hex digits after each `\\u` of this string',
  InvalidEscapeCharacter: 'backslashes of this string to be escaped',
  UnexpectedEndOfString: 'a closing double quote of this string, on the same line',
  InvalidCharacter: 'control characters of this string to be escaped',
  UnexpectedEndOfNumber: 'a complete number',
};

/**
 * The first token that violates the grammar of RFC 8259, or undefined. Used only after `JSON.parse` has failed, because
 * its messages do not always contain the position.
 *
 * INVARIANT: up to its first fault, the text nests no deeper than the call stack allows.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const open: ('{' | '[')[] = [];
  let expected = 'a value';
  const afterValue = (): void => {
    const innermost = open.at(-1);
    if (innermost === undefined) expected = 'the end of the text';
    else expected = innermost === '{' ? '`,` or `}`' : '`,` or `]`';
  };
  // Called with no length where the text ends before the bracket.
  const onEnd = (_offset: number, length: number): void => {
    if (length === 0) return;
    open.pop();
    afterValue();
  };
  try {
    visit(
      text,
      {
        onObjectBegin() {
          open.push('{');
          expected = 'a property name in double quotes or `}`';
        },
        onArrayBegin() {
          open.push('[');
          expected = 'a value or `]`';
        },
        onObjectProperty() {
          expected = '`:`';
        },
        onSeparator(character) {
          const isName = character === ',' && open.at(-1) === '{';
          expected = isName ? 'a property name in double quotes' : 'a value';
        },
        onLiteralValue: afterValue,
        onObjectEnd: onEnd,
        onArrayEnd: onEnd,
        onError(code, _offset, _length, line, column) {
          // The parser would go on after a fault, and would descend deeper.
          throw new FaultFoundError({
            line: line + 1,
            column: column + 1,
            expected: insideTokens[printParseErrorCode(code)] ?? expected,
          });
        },
      },
      { disallowComments: true },
    );
    return undefined;
  } catch (error) {
    if (error instanceof FaultFoundError) return error.fault;
    throw error;
  }
}
