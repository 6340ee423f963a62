/** Where a text stops being JSON: the offset in UTF-16 units, and line and column. */
export interface JsonFault {
  readonly offset: number;
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

interface Cursor {
  readonly text: string;
  offset: number;
}

class FaultFoundError extends Error {
  readonly expected: string;
  constructor(expected: string) {
    super(expected);
    this.expected = expected;
  }
}

const whitespace = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 8259 §7 forbids exactly these inside a string.
const plainCharacters = /[^"\\\u0000-\u001f]*/y;
const escapeSequence = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const literals = ['true', 'false', 'null'];

/**
 * The first position where `text` violates the grammar of RFC 8259, or undefined. Used only after `JSON.parse` has
 * failed, because its messages do not always contain the position.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const cursor: Cursor = { text, offset: 0 };
  try {
    readDocument(cursor);
    return undefined;
  } catch (error) {
    if (!(error instanceof FaultFoundError)) throw error;
    const before = text.slice(0, cursor.offset);
    const line = before.split('\n').length;
    const column = cursor.offset - (before.lastIndexOf('\n') + 1) + 1;
    return { offset: cursor.offset, line, column, expected: error.expected };
  }
}

// Keeps its own stack of open brackets: the text may nest deeper than the call stack.
function readDocument(cursor: Cursor): void {
  const open: ('{' | '[')[] = [];
  let valueAllowedToBeMissing = false;
  for (;;) {
    skip(cursor, whitespace);
    const closes = open.at(-1) === '{' ? '}' : ']';
    if (!(valueAllowedToBeMissing && cursor.text[cursor.offset] === closes)) {
      if (open.at(-1) === '{') readName(cursor, valueAllowedToBeMissing);
      const opened = readScalarOrBracket(cursor);
      if (opened !== undefined) {
        open.push(opened);
        valueAllowedToBeMissing = true;
        continue;
      }
    }
    valueAllowedToBeMissing = false;
    if (closeBrackets(cursor, open)) return;
  }
}

/** After a value: reads closing brackets up to the next comma, or the end of the document. */
function closeBrackets(cursor: Cursor, open: ('{' | '[')[]): boolean {
  for (;;) {
    skip(cursor, whitespace);
    const innermost = open.at(-1);
    if (innermost === undefined) {
      if (cursor.offset < cursor.text.length) throw new FaultFoundError('the end of the text');
      return true;
    }
    const closes = innermost === '{' ? '}' : ']';
    const character = cursor.text[cursor.offset];
    if (character !== ',' && character !== closes) throw new FaultFoundError(`\`,\` or \`${closes}\``);
    cursor.offset += 1;
    if (character === ',') return false;
    open.pop();
  }
}

function readName(cursor: Cursor, isFirst: boolean): void {
  if (cursor.text[cursor.offset] !== '"') {
    throw new FaultFoundError(
      isFirst ? 'a property name in double quotes or `}`' : 'a property name in double quotes',
    );
  }
  readString(cursor);
  skip(cursor, whitespace);
  if (cursor.text[cursor.offset] !== ':') throw new FaultFoundError('`:`');
  cursor.offset += 1;
  skip(cursor, whitespace);
}

function readScalarOrBracket(cursor: Cursor): '{' | '[' | undefined {
  const character = cursor.text[cursor.offset];
  if (character === '{' || character === '[') {
    cursor.offset += 1;
    return character;
  }
  if (character === '"') return readString(cursor);
  const literal = literals.find((word) => cursor.text.startsWith(word, cursor.offset));
  const length = literal === undefined ? matchLength(cursor, number) : literal.length;
  if (length === 0) throw new FaultFoundError('a value');
  cursor.offset += length;
  return undefined;
}

function readString(cursor: Cursor): undefined {
  cursor.offset += 1;
  // One pattern for both would keep a way back for each escape, and run out of stack in long strings.
  do skip(cursor, plainCharacters);
  while (skip(cursor, escapeSequence) > 0);
  if (cursor.text[cursor.offset] !== '"') {
    throw new FaultFoundError('a closing double quote; control characters and backslashes must be escaped');
  }
  cursor.offset += 1;
  return undefined;
}

function skip(cursor: Cursor, pattern: RegExp): number {
  const length = matchLength(cursor, pattern);
  cursor.offset += length;
  return length;
}

function matchLength(cursor: Cursor, pattern: RegExp): number {
  pattern.lastIndex = cursor.offset;
  return pattern.exec(cursor.text)?.[0].length ?? 0;
}
