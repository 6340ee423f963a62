/** Whether an entry of the list has every word of the search. */
export function matches(entry: string, search: string): boolean {
  const text = entry.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(stemOf(word)));
}

/** `retry` finds `retries`, `policies` finds `policy`. */
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

/** The sections with every word of a search, those with the words in their titles first. */
export function findSections(sections: readonly Section[], search: string): readonly Section[] {
  const found = sections.filter(({ title, text }) => matches(`${title} ${text}`, search));
  const inTitle = found.filter(({ title }) => matches(title, search));
  return [...new Set([...inTitle, ...found])].slice(0, MOST_SECTIONS);
}

/** The operation that a fragment names: `#/wallets/walletRpc`. */
export function operationIn(fragment: string): string | undefined {
  return /^#\/[\w%-]+\/(\w+)$/.exec(fragment)?.[1];
}
