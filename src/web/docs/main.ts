import { loadOnce } from '../../engine/load-once.ts';
import { element } from './element.ts';
import { findSections, matches, operationIn, type Section } from './navigation.ts';
import type { OperationDocument, Settings } from './operation-document.ts';
import { operationPage } from './operation-page.ts';

// The server has already written the list of guides and operations. Without this script, guides can still be read and
// the list unfolded.
const search = document.querySelector<HTMLInputElement>('#search');
const found = document.querySelector('#found');
const main = document.querySelector('main');
const contents = document.querySelector('#contents');
const introduction = [...(main?.childNodes ?? [])];
const isReference = document.body.dataset.page === 'reference';
const foundSections = document.querySelector('#sections');
const readSections = loadOnce(() => read<readonly Section[]>('/docs/search.json'));
const settings = loadOnce(() => read<Settings>('/docs/settings.json'));

async function read<Value>(path: string): Promise<Value> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`\`${path}\` returned ${response.status}`);
  return (await response.json()) as Value;
}

function filter(text: string): void {
  let count = 0;
  for (const group of contents?.querySelectorAll<HTMLDetailsElement>('details') ?? []) {
    let isAnyShown = false;
    for (const item of group.querySelectorAll<HTMLElement>('li')) {
      item.hidden = !matches(item.dataset.text ?? item.textContent, text);
      if (!item.hidden) count += 1;
      isAnyShown ||= !item.hidden;
    }
    group.hidden = !isAnyShown;
    group.open = text === '' ? group.querySelector('[aria-current]') !== null : isAnyShown;
  }
  showCount(text, count);
  void searchSections(text, count);
}

function showCount(text: string, count: number): void {
  if (found !== null) found.textContent = text === '' ? '' : `${count} found`;
}

/** Lists the sections of the guides that contain the words. `count` entries of the list have been found as well. */
async function searchSections(text: string, count: number): Promise<void> {
  const sections = text === '' ? [] : findSections(await readSections(), text);
  // The reader may have typed more in the meantime.
  if (search?.value.trim() !== text) return;
  const items = sections.map(({ href, title }) => element('li', {}, element('a', { href }, title)));
  foundSections?.replaceChildren(...items);
  showCount(text, count + sections.length);
}

function mark(id: string | undefined): void {
  contents?.querySelector('[aria-current]')?.removeAttribute('aria-current');
  const link = id === undefined ? null : contents?.querySelector(`a[href$="/${id}"]`);
  if (!link) return;
  link.setAttribute('aria-current', 'page');
  const group = link.closest('details');
  if (group) group.open = true;
}

async function show(): Promise<void> {
  // The link leads to a section of the same page.
  if (/^#[^/]/.test(location.hash)) return;
  const id = operationIn(location.hash);
  mark(id);
  if (id === undefined) {
    openGroup(/^#\/([\w%-]+)$/.exec(location.hash)?.[1]);
    main?.replaceChildren(...introduction);
    document.title = 'Reference · Custos';
    return;
  }
  try {
    const [operation, known] = await Promise.all([
      read<OperationDocument>(`/docs/operations/${id}.json`),
      settings(),
    ]);
    // The reader may have opened another page in the meantime.
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

/** Returns the links that are currently visible, in order. */
function visibleLinks(): HTMLElement[] {
  return [...(contents?.querySelectorAll<HTMLElement>('a') ?? [])].filter((link) => link.checkVisibility());
}

function step(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const isTyping = target.matches('input, textarea, select');
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search?.focus();
  }
  if (event.key === 'Escape' && target === search && search) {
    search.value = '';
    filter('');
  }
  const isInList = target === search || target.closest('#contents a') !== null;
  if (!isInList || !['ArrowDown', 'ArrowUp'].includes(event.key)) return;
  event.preventDefault();
  const links = visibleLinks();
  const position = links.indexOf(target) + (event.key === 'ArrowDown' ? 1 : -1);
  (position < 0 ? search : links[Math.min(position, links.length - 1)])?.focus();
}

document.addEventListener('keydown', step);
search?.addEventListener('input', () => filter(search.value.trim()));
if (isReference) {
  window.addEventListener('hashchange', () => void show());
  if (location.hash !== '') void show();
}
