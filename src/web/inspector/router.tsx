import { signal } from '@preact/signals';
import { hrefOf, parseRoute, type Route } from './routes.ts';

/** The route that the address names. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
});

/** Changes values of the query without an entry in the history; an empty value removes one. */
export function setQuery(change: Route['query']): void {
  const { page, path, query } = route.value;
  history.replaceState(null, '', hrefOf(page, path, { ...query, ...change }));
  route.value = parseRoute(location.hash);
}

/** Escape closes the row that is open, except where it takes something back. */
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented) return;
  if ((event.target as Element | null)?.closest('input, textarea, select, dialog') != null) return;
  document.querySelector<HTMLAnchorElement>('.detail a.back')?.click();
});

export function goTo(href: string): void {
  location.hash = href;
}
