import { loadOnce } from '../../engine/load-once.ts';
import { element } from './element.ts';
import { pageUrl, readJson, referenceUrl } from './page-url.ts';
import type { Found, Piece, Search, SearchEntry } from './search.ts';

const kinds: Readonly<Record<SearchEntry['kind'], string>> = {
  guide: 'Guide',
  operation: 'Operation',
  event: 'Event',
  error: 'Error',
  setting: 'Setting',
};

const readSearch = loadOnce(async (): Promise<Search> => {
  const [{ createSearch }, entries] = await Promise.all([
    import('./search.ts'),
    readJson<readonly SearchEntry[]>('search.json'),
  ]);
  return createSearch(entries);
});

/**
 * Returns a dialog that searches the documentation. The keyboard works as in a combobox. The index is loaded while the
 * reader types the first letters, none of which is lost.
 */
export function createSearchDialog(): HTMLDialogElement {
  const input = element('input', {
    type: 'search',
    role: 'combobox',
    'aria-label': 'Search guides, operations, errors and settings',
    'aria-expanded': 'true',
    'aria-controls': 'found',
    'aria-autocomplete': 'list',
    placeholder: 'Guides, operations, errors, settings',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const list = element('div', { id: 'found', role: 'listbox', 'aria-label': 'Found' });
  const count = element(
    'p',
    { role: 'status', class: 'quiet' },
    'Type a word, such as faucet or policy_violation.',
  );
  const dialog = element('dialog', { class: 'search', 'aria-label': 'Search' }, input, count, list);
  let chosen = 0;

  const options = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>('[role=option]')];
  const choose = (position: number): void => {
    const all = options();
    if (all.length === 0) return;
    chosen = (position + all.length) % all.length;
    for (const [at, option] of all.entries()) option.setAttribute('aria-selected', String(at === chosen));
    input.setAttribute('aria-activedescendant', all[chosen]?.id ?? '');
    all[chosen]?.scrollIntoView({ block: 'nearest' });
  };
  const find = async (): Promise<void> => {
    try {
      show(input.value.trim(), await readSearch(), list, count);
    } catch (error) {
      count.textContent = `The search cannot be loaded: ${(error as Error).message}`;
      return;
    }
    list.scrollTop = 0;
    choose(0);
  };
  input.addEventListener('input', () => void find());
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      choose(chosen + (event.key === 'ArrowDown' ? 1 : -1));
    }
    if (event.key === 'Enter') options()[chosen]?.click();
    // In a field of the type search, the browser would only clear the text at the first press.
    if (event.key === 'Escape') {
      event.preventDefault();
      dialog.close();
    }
  });
  list.addEventListener('click', ({ target }) => {
    if ((target as HTMLElement).closest('a') !== null) dialog.close();
  });
  // The target of a click outside the dialog's content is the dialog itself.
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) dialog.close();
  });
  document.body.append(dialog);
  readSearch().catch(() => undefined);
  return dialog;
}

function show(text: string, search: Search, list: HTMLElement, count: HTMLElement): void {
  const found = text === '' ? [] : search(text);
  count.textContent = text === '' ? '' : found.length === 0 ? 'Nothing found.' : `${found.length} found`;
  list.replaceChildren(...found.map(optionOf));
}

function optionOf({ entry, title, excerpt }: Found, position: number): HTMLElement {
  return element(
    'a',
    {
      role: 'option',
      id: `found-${position}`,
      'aria-selected': 'false',
      href: urlOf(entry.href),
      tabindex: '-1',
    },
    element('span', { class: `kind of-${entry.kind}` }, kinds[entry.kind]),
    element('strong', {}, ...pieces(title)),
    element('span', { class: 'place' }, entry.place),
    element('span', { class: 'excerpt' }, ...pieces(excerpt)),
  );
}

function urlOf(href: string): string {
  const [, tag, id] = /^#\/([\w%-]+)\/(\w+)$/.exec(href) ?? [];
  return tag === undefined || id === undefined ? pageUrl(href) : referenceUrl({ tag, id });
}

function pieces(parts: readonly Piece[]): (string | HTMLElement)[] {
  return parts.map(({ text, isMatch }) => (isMatch ? element('mark', {}, text) : text));
}
