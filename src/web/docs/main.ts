import { loadOnce } from '../../engine/load-once.ts';
import { copyButton, element } from './element.ts';
import { operationIn } from './navigation.ts';
import type { OperationDocument, Settings } from './operation-document.ts';
import { readJson } from './page-url.ts';
import { createSearchDialog } from './search-dialog.ts';

// The server has already rendered the navigation and the guides. Without this script, guides can still be read and the
// list can still be unfolded.
const main = document.querySelector('main');
const contents = document.querySelector<HTMLElement>('#contents');
const introduction = [...(main?.childNodes ?? [])];
const settings = loadOnce(() => readJson<Settings>('settings.json'));
let searchDialog: HTMLDialogElement | undefined;

function openSearch(): void {
  searchDialog ??= createSearchDialog();
  closeMenu();
  if (!searchDialog.open) searchDialog.showModal();
  searchDialog.querySelector('input')?.select();
}

function mark(id: string | undefined): void {
  contents?.querySelector('[aria-current]')?.removeAttribute('aria-current');
  const link = id === undefined ? null : contents?.querySelector(`a[href$="/${id}"]`);
  if (!link) return;
  link.setAttribute('aria-current', 'page');
  for (let group = link.closest('details'); group; group = group.parentElement?.closest('details') ?? null) {
    group.open = true;
  }
  link.scrollIntoView({ block: 'nearest' });
}

async function show(): Promise<void> {
  // The link leads to a section of the same page.
  if (/^#[^/]/.test(location.hash)) return;
  const id = operationIn(location.hash);
  mark(id);
  document.body.dataset.page = id === undefined ? 'reference' : 'operation';
  if (id === undefined) {
    openGroup(/^#\/([\w%-]+)$/.exec(location.hash)?.[1]);
    main?.replaceChildren(...introduction);
    document.title = 'Reference · Custos';
    return;
  }
  try {
    const [operation, known, { operationPage }] = await Promise.all([
      readJson<OperationDocument>(`operations/${id}.json`),
      settings(),
      import('./operation-page.ts'),
    ]);
    // The reader may have opened another page while this one was loaded.
    if (operationIn(location.hash) !== id) return;
    main?.replaceChildren(operationPage(operation, known));
    document.title = `${operation.summary} · Custos`;
  } catch (error) {
    main?.replaceChildren(
      element('h1', { tabindex: '-1' }, 'Not found'),
      element('p', {}, `The operation ${id} cannot be shown: ${(error as Error).message}`),
    );
  }
  window.scrollTo(0, 0);
  main?.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
}

function openGroup(tag: string | undefined): void {
  const group = tag === undefined ? null : document.getElementById(`tag-${decodeURIComponent(tag)}`);
  if (group instanceof HTMLDetailsElement) group.open = true;
}

const menu = document.querySelector<HTMLButtonElement>('#menu');

function closeMenu(): void {
  document.body.classList.remove('menu-open');
  menu?.setAttribute('aria-expanded', 'false');
}

menu?.addEventListener('click', () => {
  const isOpen = document.body.classList.toggle('menu-open');
  menu.setAttribute('aria-expanded', String(isOpen));
});
contents?.addEventListener('click', ({ target }) => {
  if ((target as HTMLElement).closest('a') !== null) closeMenu();
});
document.querySelector('#search')?.addEventListener('click', openSearch);
document.addEventListener('keydown', (event) => {
  const isTyping = (event.target as HTMLElement).matches('input, textarea, select');
  const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey;
  if (isSlash || (event.key === 'k' && (event.ctrlKey || event.metaKey))) {
    event.preventDefault();
    openSearch();
  }
  if (event.key === 'Escape') closeMenu();
});

/** Adds a copy button to each code block of a guide. */
for (const block of main?.querySelectorAll<HTMLElement>('.block') ?? []) {
  block.append(copyButton(() => block.querySelector('code')?.textContent ?? '', 'the code'));
}

/** In a sandbox, links to its inspector. Other servers have none. */
async function linkInspector(): Promise<void> {
  const { caFile, origin } = await settings();
  if (caFile === undefined || origin !== undefined) return;
  document.querySelector('header nav')?.append(element('a', { href: '/' }, 'Inspector'));
  contents?.prepend(element('p', { class: 'to-inspector' }, element('a', { href: '/' }, 'Inspector')));
}
linkInspector().catch(() => undefined);

document.documentElement.classList.add('has-script');
if (document.body.dataset.page === 'reference') {
  window.addEventListener('hashchange', () => void show());
  if (location.hash !== '') void show();
} else {
  contents?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
}
