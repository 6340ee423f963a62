import type { GuidePage } from '../generated/pages.ts';
import type { ReferenceDocument, ReferenceEntry } from './reference-document.ts';

/** The pages that the navigation links to. */
export interface Navigation {
  readonly entries: ReadonlyMap<string, ReferenceEntry>;
  readonly guides: readonly GuidePage[];
}

/** The content of a page of `/docs`. */
interface Shell extends Navigation {
  readonly title: string;
  /** HTML. */
  readonly main: string;
  readonly page: 'reference' | 'guide';
  /** The path of the guide that is shown; undefined for the reference. */
  readonly current?: string | undefined;
}

/** Returns a whole page. The navigation works without the script, which adds search and the pages of operations. */
export function docsHtml({ title, main, page, current, entries, guides }: Shell): string {
  const first = guides[0]?.path ?? '';
  const manual = guides.find(({ path }) => placeOf(path) === 'manual')?.path ?? '';
  const place = placeOf(current);
  const link = (href: string, text: string, isCurrent: boolean): string =>
    `<a href="${href}"${isCurrent ? ' aria-current="true"' : ''}>${text}</a>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Custos</title>
<link rel="icon" type="image/svg+xml" href="/docs/icon.svg">
<link rel="stylesheet" href="/docs/docs.css">
<script src="/docs/main.js" type="module"></script>
</head>
<body data-page="${page}" data-root="/docs/">
<a class="skip" href="#main">Skip to the text</a>
<header>
<button id="menu" type="button" class="plain" aria-label="Menu" aria-expanded="false" aria-controls="contents"><span></span></button>
<a class="brand" href="/docs"><img src="/docs/icon.svg" alt="" width="24" height="24">Custos</a>
<nav aria-label="Parts">${link(`/docs/${first}`, 'Guides', place === 'guides')}${link('/docs', 'Reference', place === 'reference')}${link(`/docs/${manual}`, 'Manual', place === 'manual')}</nav>
<button id="search" type="button"><span>Search</span><kbd>/</kbd></button>
<a class="narrow" href="#contents">Contents</a>
</header>
<div class="layout">
<nav id="contents" aria-label="Contents">${contentsHtml({ entries, guides }, current)}</nav>
<main id="main">
${main}
</main>
</div>
</body>
</html>
`;
}

type Place = 'guides' | 'manual' | 'reference';

function placeOf(path: string | undefined): Place {
  if (path === undefined) return 'reference';
  return path.startsWith('guides/') ? 'guides' : 'manual';
}

/** The tags of the document, grouped by subject. Tags that are not listed follow at the end. */
const subjects: readonly (readonly [string, readonly string[]])[] = [
  [
    'Wallets',
    ['wallets', 'accounts', 'transactions', 'wallet_actions', 'wallet_automations', 'custodial_wallets'],
  ],
  ['Access', ['policies', 'condition_sets', 'aggregations', 'key_quorums', 'intents', 'user_signers']],
  ['People', ['users', 'organizations', 'passwordless', 'oauth', 'kyc', 'kyb', 'apps']],
  ['Money', ['swaps', 'earn', 'payouts', 'deposit_accounts', 'external_fiat_accounts', 'cards']],
  ['Notifications', ['webhooks']],
];

/** Returns the navigation of the current part: guides, the manual, or operations by tag and events. */
function contentsHtml({ entries, guides }: Navigation, current: string | undefined): string {
  const place = placeOf(current);
  const guided = guides.filter(({ path }) => placeOf(path) === 'guides');
  const manual = guides.filter(({ path }) => placeOf(path) === 'manual' && !path.startsWith('errors/'));
  const tags = Map.groupBy(entries.values(), ({ tag, event }) => (event === undefined ? tag : 'events'));
  const events = tags.get('events') ?? [];
  tags.delete('events');
  const listed = new Set(subjects.flatMap(([, names]) => names));
  const others = [...tags.keys()].filter((name) => !listed.has(name));
  const groups = [...subjects, ...(others.length === 0 ? [] : [['More', others] as const])];
  const reference = groups.map(([title, names]) => {
    const inGroup = names.filter((name) => tags.has(name));
    const parts = inGroup.map((name) => tagHtml(`tag-${name}`, wordsOf(name), tags.get(name) ?? []));
    const more = title === 'Notifications' ? tagHtml('tag-events', 'Events', events) : '';
    return `<section><h2>${title}</h2>${parts.join('')}${more}</section>`;
  });
  const part = (title: string, name: Place, inner: string): string =>
    `<details class="part"${place === name ? ' open' : ''}><summary>${title}</summary>${inner}</details>`;
  return [
    part('Guides', 'guides', guideList(guided, current)),
    part('Manual', 'manual', guideList(manual, current)),
    part('Reference', 'reference', reference.join('\n')),
  ].join('\n');
}

/** Returns a tag as words: `key_quorums` becomes `Key quorums`. */
function wordsOf(tag: string): string {
  const words = tag.replaceAll('_', ' ');
  return abbreviations[tag] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

const abbreviations: Readonly<Record<string, string>> = { kyc: 'KYC', kyb: 'KYB', oauth: 'OAuth' };

function guideList(guides: readonly GuidePage[], current: string | undefined): string {
  const items = guides.map(({ path, title }) => {
    const mark = path === current ? ' aria-current="page"' : '';
    return `<li><a href="/docs/${path}"${mark}>${escapeHtml(title)}</a></li>`;
  });
  return `<ul>${items.join('')}</ul>`;
}

function tagHtml(id: string, title: string, entries: readonly ReferenceEntry[]): string {
  const items = entries.map(({ tag, id: operation, summary, method, event }) => {
    const label =
      event === undefined
        ? `<span class="method ${method.toLowerCase()}">${shortMethods[method] ?? method}</span>${escapeHtml(summary)}`
        : escapeHtml(event);
    return `<li><a href="/docs#/${tag}/${operation}">${label}</a></li>`;
  });
  const count = `<span class="count">${entries.length}</span>`;
  return `<details id="${id}"><summary>${escapeHtml(title)}${count}</summary><ul>${items.join('')}</ul></details>`;
}

const shortMethods: Readonly<Record<string, string>> = { DELETE: 'DEL' };

/**
 * Returns the content of a guide with its outline, its position in the series, and links to the guides before and after
 * it.
 */
export function guideHtml(guide: GuidePage, html: string, { entries, guides }: Navigation): string {
  const place = placeOf(guide.path);
  const series = guides.filter(({ path }) => place === 'guides' && placeOf(path) === 'guides');
  const position = series.findIndex(({ path }) => path === guide.path);
  const progress =
    position === -1
      ? ''
      : `<p class="progress"><progress max="${series.length}" value="${position + 1}" aria-label="Progress through the guides"></progress> Guide ${position + 1} of ${series.length}</p>`;
  const step = (to: GuidePage | undefined, kind: 'previous' | 'next'): string =>
    to === undefined
      ? ''
      : `<a class="${kind}" href="/docs/${to.path}" rel="${kind === 'next' ? 'next' : 'prev'}"><span>${kind === 'next' ? 'Next' : 'Previous'}</span>${escapeHtml(to.title)}</a>`;
  const steps =
    position === -1 ? '' : `${step(series[position - 1], 'previous')}${step(series[position + 1], 'next')}`;
  const headings = html
    .split('<h2 id="')
    .slice(1)
    .map((part) => {
      const [id, text] = [part.slice(0, part.indexOf('"')), between(part, '>', '</h2>')];
      return `<li><a href="#${id}">${escapeHtml(textOf(text))}</a></li>`;
    });
  const outline =
    headings.length < 2
      ? ''
      : `<nav class="outline" aria-label="On this page"><h2>On this page</h2><ul>${headings.join('')}</ul></nav>`;
  return `<div class="guide"><article>${progress}${withOperationLinks(html, entries.values(), guide.path.startsWith('errors/'))}${
    steps === '' ? '' : `<nav class="steps" aria-label="Guides before and after">${steps}</nav>`
  }</article>${outline}</div>`;
}

/**
 * Links each mention of an operation in a guide, such as `POST /v1/wallets`, to its page. On pages of errors, links
 * operations by their ids as well.
 */
function withOperationLinks(html: string, entries: Iterable<ReferenceEntry>, isError: boolean): string {
  const links = new Map(
    [...entries].flatMap(({ method, path, tag, id }): [string, string][] => [
      [`${method} ${path}`, `/docs#/${tag}/${id}`],
      ...(isError ? [[id, `/docs#/${tag}/${id}`] as [string, string]] : []),
    ]),
  );
  return html.replaceAll(/<code>([A-Z]+ \/[^<]*|\w+)<\/code>/g, (code: string, text: string) => {
    const link = links.get(text);
    return link === undefined ? code : `<a href="${link}">${code}</a>`;
  });
}

/** Returns the content of `/docs` while no operation is selected. */
export function introductionHtml({ info, tags }: ReferenceDocument, { entries, guides }: Navigation): string {
  const series = guides.filter(({ path }) => placeOf(path) === 'guides');
  const cards = series.map(
    ({ path, title, html }) =>
      `<li><a href="/docs/${path}"><strong>${escapeHtml(title)}</strong><span>${escapeHtml(firstSentence(html))}</span></a></li>`,
  );
  const counts = Map.groupBy(entries.values(), ({ tag, event }) => (event === undefined ? tag : 'events'));
  const items = tags.map(
    ({ name, description = '' }) =>
      `<tr><th scope="row"><a href="/docs#/${name}">${wordsOf(name)}</a></th><td>${proseHtml(firstSentence(description))}</td><td class="number">${counts.get(name)?.length ?? 0}</td></tr>`,
  );
  return `<div class="start"><h1>Reference</h1>
<p>${proseHtml(info.description)}</p>
<h2>Start with a guide</h2>
<ol class="cards">${cards.join('')}</ol>
<h2>Resources</h2>
<div class="wide" tabindex="0" role="region" aria-label="Resources"><table><thead><tr><th scope="col">Resource</th><th scope="col">What it is</th><th scope="col" class="number">Operations</th></tr></thead><tbody>${items.join('\n')}</tbody></table></div></div>`;
}

/** Returns the first sentence of a text, or of the first paragraph of HTML. */
function firstSentence(given: string): string {
  const text = given.includes('<p>')
    ? textOf(between(given, '<p>', '</p>').replaceAll(/<[^<>]*>/g, ''))
    : given;
  const end = text.indexOf('. ');
  return end === -1 ? text : text.slice(0, end + 1);
}

/** Returns the text after the first `begin`, up to the next `end`. */
function between(text: string, begin: string, end: string): string {
  const from = text.indexOf(begin) + begin.length;
  return text.slice(from, text.indexOf(end, from));
}

/** An entry of the search, as `src/web/docs/search.ts` reads it. */
export interface SearchEntry {
  readonly kind: 'guide' | 'operation' | 'event' | 'error' | 'setting';
  readonly href: string;
  readonly title: string;
  readonly place: string;
  readonly text: string;
}

/**
 * Returns the entries of the search.
 * @param render replaces the texts in a guide that differ between servers.
 */
export function searchEntries(
  { entries, guides }: Navigation,
  render: (html: string) => string,
): SearchEntry[] {
  const operations = [...entries.values()].map(({ id, tag, summary, method, path, event, operation }) => ({
    kind: event === undefined ? ('operation' as const) : ('event' as const),
    href: `#/${tag}/${id}`,
    title: event ?? summary,
    place: event === undefined ? `${method} ${path} ${id}` : summary,
    text: operation.description?.replaceAll('`', '') ?? '',
  }));
  return [...operations, ...guides.flatMap((guide) => sectionsOf({ ...guide, html: render(guide.html) }))];
}

/** Returns entries for the sections of a guide, and for the rows of the table of settings. */
function sectionsOf({ path, title: guide, html }: GuidePage): SearchEntry[] {
  if (path.startsWith('errors/')) {
    const text = textOf(html.slice(html.indexOf('</h1>')));
    return [{ kind: 'error', href: `${path}#${guide}`, title: guide, place: 'Error code', text }];
  }
  return html.split(/(?=<h[1-6] id=|<tr id=)/).flatMap((part) => {
    const [, name, id, heading = ''] = /^<(h[1-6]|tr) id="([^"]*)">(.*?)<\/(?:h|td)/s.exec(part) ?? [];
    if (id === undefined) return [];
    const title = textOf(heading);
    const text = textOf(part.slice(part.indexOf(name === 'tr' ? '</td' : '</h')));
    const kind = name === 'tr' ? 'setting' : 'guide';
    return [{ kind, href: `${path}#${id}`, title, place: title === guide ? '' : guide, text } as const];
  });
}

/** Strips the tags from HTML and decodes its entities. */
function textOf(html: string): string {
  return html
    .replaceAll(/<[^<>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** Escapes text for HTML. Text in backticks becomes code. */
function proseHtml(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>');
}

/** Escapes text for HTML and for its attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
