/** Whether an entry of the list contains every word of the search. */
export function matches(entry: string, search: string): boolean {
  const text = entry.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(stemOf(word)));
}

/** Returns the stem of a word, so that `retry` finds `retries`, and `policies` finds `policy`. */
function stemOf(word: string): string {
  return word.length < 5 ? word : word.replace(/(?:ies|y|s)$/, '');
}

/** A section of a guide. */
export interface Section {
  readonly href: string;
  /** The titles of the guide and of the section. */
  readonly title: string;
  readonly text: string;
}

const MOST_SECTIONS = 40;

/** Returns the sections that contain every word of a search. Sections with the words in their titles come first. */
export function findSections(sections: readonly Section[], search: string): readonly Section[] {
  const found = sections.filter(({ title, text }) => matches(`${title} ${text}`, search));
  const inTitle = found.filter(({ title }) => matches(title, search));
  return [...new Set([...inTitle, ...found])].slice(0, MOST_SECTIONS);
}

/** The operation that a fragment such as `#/wallets/walletRpc` names. */
export function operationIn(fragment: string): string | undefined {
  return /^#\/[\w%-]+\/(\w+)$/.exec(fragment)?.[1];
}
