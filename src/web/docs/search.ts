import MiniSearch from 'minisearch';

/** Something that a search can find: a section of a guide, an operation, an event, an error code or a setting. */
export interface SearchEntry {
  readonly kind: 'guide' | 'operation' | 'event' | 'error' | 'setting';
  /** Relative to the root of the documentation, such as `guides/policies#a-gap`, or `#/wallets/walletRpc`. */
  readonly href: string;
  readonly title: string;
  /** Where the entry belongs, such as the guide of a section, or the method and path of an operation. */
  readonly place: string;
  readonly text: string;
}

/** A piece of a string. `isMatch`: the search has found this piece. */
export interface Piece {
  readonly text: string;
  readonly isMatch: boolean;
}

export interface Found {
  readonly entry: SearchEntry;
  readonly title: readonly Piece[];
  /** The part of the text around the first match. */
  readonly excerpt: readonly Piece[];
}

/** Returns the best entries for a search, best first. */
export type Search = (text: string) => readonly Found[];

const MAX_FOUND = 30;

/** Words that are too common to search for. */
const fillWords = new Set([
  'a',
  'an',
  'and',
  'are',
  'as',
  'by',
  'for',
  'in',
  'is',
  'of',
  'or',
  'the',
  'to',
  'with',
]);

/**
 * Splits text into words that readers may type: `createWallet` is also found as `create wallet`, and
 * `policy_violation` by either word.
 */
function wordsIn(text: string): string[] {
  return (text.match(/[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*/gu) ?? []).flatMap((word) => {
    const parts = word.replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2').split(/[\s_.]+/);
    return parts.length > 1 ? [word, ...parts] : [word];
  });
}

/** Returns a word's stem, so that `retry` finds `retries`, and `policies` finds `policy`. */
function stemOf(word: string): string {
  const lower = word.toLowerCase();
  return lower.length < 5 ? lower : lower.replace(/(?:ies|y|es|s)$/, '');
}

/** Builds the index. It takes a few dozen milliseconds for the whole documentation. */
export function createSearch(entries: readonly SearchEntry[]): Search {
  const index = new MiniSearch<SearchEntry & { readonly id: number }>({
    fields: ['title', 'place', 'text'],
    tokenize: wordsIn,
    processTerm: (word) => (fillWords.has(word.toLowerCase()) ? null : stemOf(word)),
  });
  index.addAll(entries.map((entry, id) => ({ ...entry, id })));
  const options = {
    boost: { title: 5, place: 2 },
    prefix: (term: string) => term.length > 1,
    fuzzy: (term: string) => (term.length > 4 ? 0.2 : false),
    weights: { prefix: 0.5, fuzzy: 0.2 },
    // Events rank lower, because they repeat the words of the operations that cause them.
    boostDocument: (id: number) => (entries[id]?.kind === 'event' ? 0.6 : 1),
  } as const;
  return (text) => {
    const all = index.search(text, { ...options, combineWith: 'AND' });
    const found = all.length > 0 ? all : index.search(text, { ...options, combineWith: 'OR' });
    return found.slice(0, MAX_FOUND).flatMap(({ id, match }) => {
      const entry = entries[id as number];
      if (entry === undefined) return [];
      const stems = Object.keys(match);
      return [{ entry, title: marked(entry.title, stems), excerpt: excerptOf(entry.text, stems) }];
    });
  };
}

/** Splits a string into matches and the pieces between them. `stems`: the beginnings of the words that were found. */
function marked(text: string, stems: readonly string[]): Piece[] {
  if (stems.length === 0) return [{ text, isMatch: false }];
  const longestFirst = [...stems].sort((a, b) => b.length - a.length);
  const escaped = longestFirst.map((stem) => stem.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`((?<![\\p{Ll}\\p{N}])(?:${escaped.join('|')})\\p{L}{0,3}(?![\\p{Ll}]))`, 'giu');
  return text
    .split(pattern)
    .map((part, position) => ({ text: part, isMatch: position % 2 === 1 }))
    .filter((piece) => piece.text !== '');
}

const BEFORE = 60;
const LENGTH = 180;

function excerptOf(text: string, stems: readonly string[]): Piece[] {
  let at = 0;
  for (const piece of marked(text, stems)) {
    if (piece.isMatch) break;
    at += piece.text.length;
  }
  if (at >= text.length) at = 0;
  const start = at < BEFORE ? 0 : text.indexOf(' ', at - BEFORE) + 1;
  const end = start + LENGTH;
  const cut = `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`;
  return marked(cut, stems);
}
