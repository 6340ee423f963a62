import { expect, test } from 'vitest';
import { errorCatalogue } from '../../src/generated/errors.ts';
import { type SourceFile, sourceFiles } from './source-files.ts';

// They list the words that they look for.
const lists = ['test/house/documents.test.ts', 'test/house/english.test.ts'];

const code = sourceFiles(
  'src/**/*.{ts,tsx}',
  'codegen/**/*.ts',
  'mocks/*.ts',
  'bench/**/*.ts',
  'test/**/*.ts',
).filter(({ path }) => !lists.includes(path));
// docs/decisions/choices.md is generated from comments, which are checked where they are written.
const documents = sourceFiles('openapi/**/*.yaml', 'README.md', 'docs/**/*.md', 'src/**/*.md').filter(
  ({ path }) => path !== 'docs/decisions/choices.md',
);

/** Calls whose string arguments are error messages. */
const errorCall = /\b(?:new [A-Z]\w*Error|super|invalid(?:Field|Query|Option))\(/g;

interface Literal {
  readonly quote: string;
  readonly text: string;
}

/** The string literals that are direct arguments of a call. `start`: the offset after its opening parenthesis. */
function literalArguments(source: string, start: number): Literal[] {
  const found: Literal[] = [];
  let depth = 0;
  for (let at = start; at < source.length; at += 1) {
    const character = source[at]!;
    if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) {
      if (depth === 0) return found;
      depth -= 1;
    } else if (`'"\``.includes(character)) {
      const end = endOfLiteral(source, at);
      if (depth === 0) found.push({ quote: character, text: source.slice(at + 1, end) });
      at = end;
    }
  }
  return found;
}

/** The offset of the closing quote. Interpolations in a template may contain further literals. */
function endOfLiteral(source: string, start: number): number {
  const quote = source[start];
  let depth = 0;
  for (let at = start + 1; at < source.length; at += 1) {
    if (source[at] === '\\') at += 1;
    else if (quote === '`' && source.startsWith('${', at)) depth += 1;
    else if (depth > 0 && source[at] === '}') depth -= 1;
    else if (depth > 0 && source[at] === '`') at = endOfLiteral(source, at);
    else if (depth === 0 && source[at] === quote) return at;
  }
  return source.length;
}

/** Starts of messages that are upper-case for a reason: acronyms, proper names, header and setting names. */
const properStart =
  /^(?:[A-Z][A-Z0-9_]+\b|AA\d\d|U\+|EIP-|Content-Type|Prefer|Error: |Transfer: |Transaction |Provided |Blockhash |Ethereum|Solana|Spark|Tempo)/;

/** Lower case (or a backtick, digit, pointer, option, setting or interpolation) at the start, no period at the end. */
function isInStyle(message: string): boolean {
  return (/^(?:[a-z0-9`\\/$\-({]|$)/.test(message) || properStart.test(message)) && !/[^.]\.$/.test(message);
}

function messagesOutOfStyle({ path, text }: SourceFile): string[] {
  return [...text.matchAll(errorCall)]
    .flatMap((match) => literalArguments(text, match.index + match[0].length))
    .filter(({ text }) => !fixedMessages.has(text) && !isInStyle(text.trim()))
    .map((literal) => `${path}: ${literal.text}`);
}

// Default texts that the published contract fixes word for word.
const publishedTexts = new Set([
  'https_required',
  'incorrect_quantity_of_authorization_signatures',
  'insufficient_correct_authorization_signatures',
  'insufficient_funds',
  'internal_error',
  'invalid_app_credentials',
  'linked_account_not_found',
  'missing_or_empty_authorization_header',
  'missing_or_invalid_service_app_id',
  'missing_or_invalid_token',
  'not_found',
  'policy_violation',
  'resource_conflict',
  'too_many_requests',
  'user_does_not_exist',
  'zero_correct_authorization_signatures',
]);

// Messages that published clients compare word for word, and those of a Solana node that a test plays.
const fixedMessages = new Set([
  'Idempotency key was reused for a request with a new body. Please create a new idempotency key for the request.',
  'Previous request with matching idempotency key is still in progress.',
  'Invalid param: could not find mint',
  'Method not found',
]);

// Words that proved obscure here, with the reason or the replacement.
const obscure = [
  /\btold\b/gi, // reported, notified, documented
  /\btells\b/gi, // reports, shows, determines
  /(?<!\bthere )\b(?:is|are) none\b/gi, // does not exist, is not a …
  /\b[Nn]obody(?:['’]s)?\b/g, // no user, no app, without an owner
  /\bsomebody\b/gi, // a user, a caller
  /\beverybody\b/gi, // every caller, publicly
  /\bwhoever\b/gi, // the caller, any caller
  /\bstands in for\b/gi, // replaces
  /\ba stranger\b/gi, // an unauthorized caller
  /\bcomes? to be\b/gi, // is created
  /\bcame to be\b/gi, // was created
  /\bcomes to\b/gi, // results in
  /\b(?:begins?|began) anew\b/gi, // restarts
  /\banew\b/gi, // again
  /\bin vain\b/gi, // without result
  /\busurper\w*/gi, // replacement
  /\bwhat came\b/gi, // the input, the actual value
];

function obscureWords({ path, text }: SourceFile): string[] {
  return obscure.flatMap((pattern) => [...text.matchAll(pattern)].map(([match]) => `${path}: ${match}`));
}

test('error messages start in lower case and end without a period', () => {
  expect(code.flatMap(messagesOutOfStyle)).toEqual([]);
});

test('the check of messages sees literals, templates and concatenations, and only direct arguments', () => {
  const offences = (text: string): string[] => messagesOutOfStyle({ path: 'x', text });
  expect(offences("new ApiError('invalid_data', 'Not this.')")).toEqual(['x: Not this.']);
  expect(offences('invalidField(`/a/${at[`b`]}`, `Expected ${f("C")}`)')).toEqual(['x: Expected ${f("C")}']);
  expect(offences("super('expected a key, ' + 'Got another.')")).toEqual(['x: Got another.']);
  expect(offences("new InvalidKeyError(`\\`${key}\\` is no key`, { cause: 'Any.' })")).toEqual([]);
  expect(offences("new ApiError('not_supported', pick('Any.'))")).toEqual([]);
});

test('default texts of error codes are in the same style, except for published ones', () => {
  const offences = Object.entries(errorCatalogue)
    .filter(([code, { message }]) => !publishedTexts.has(code) && !isInStyle(message))
    .map(([code, { message }]) => `${code}: ${message}`);
  expect(offences).toEqual([]);
});

test('obscure words stay out of comments, messages and public texts', () => {
  expect([...code, ...documents].flatMap(obscureWords)).toEqual([]);
});
