import { signal } from '@preact/signals';
import { hrefOf, parseRoute, type Route } from './routes.ts';

/** The route of the current address. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
});

/** Changes values of the query without adding an entry to the history. An empty value removes a parameter. */
export function setQuery(change: Route['query']): void {
  const { page, path, query } = route.value;
  history.replaceState(null, '', hrefOf(page, path, { ...query, ...change }));
  route.value = parseRoute(location.hash);
}

/** Escape closes the open row, except where it cancels something. */
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented) return;
  if ((event.target as Element | null)?.closest('input, textarea, select, dialog') != null) return;
  document.querySelector<HTMLAnchorElement>('.detail a.back')?.click();
});

export function goTo(href: string): void {
  location.hash = href;
}
