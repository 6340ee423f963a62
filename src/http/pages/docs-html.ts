import type { GuidePage } from '../../generated/pages.ts';
import type { ReferenceDocument, ReferenceEntry } from './reference-document.ts';

/** What every page of /docs has. */
export interface Shell {
  readonly title: string;
  /** HTML of the list at the side. */
  readonly contents: string;
  /** HTML. */
  readonly main: string;
  readonly page: 'reference' | 'guide';
}

/** A whole page. The list can be read without the script, which adds search and the pages of operations. */
export function docsHtml({ title, contents, main, page }: Shell): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Custos</title>
<link rel="icon" type="image/svg+xml" href="/docs/icon.svg">
<link rel="stylesheet" href="/docs/docs.css">
<script src="/docs/docs.js" defer></script>
</head>
<body data-page="${page}">
<a class="skip" href="#main">Skip to the text</a>
<header><strong>Custos</strong> <a href="/docs">Reference</a> <a href="/openapi.json">OpenAPI document</a> <a class="narrow" href="#contents">Contents</a></header>
<div class="layout">
<nav id="contents" aria-label="Contents">${contents}</nav>
<main id="main">
${main}
</main>
</div>
</body>
</html>
`;
}

/** The list of guides, operations by tag, and events. `current`: the path of the guide that is shown. */
export function contentsHtml(
  entries: Iterable<ReferenceEntry>,
  guides: readonly GuidePage[],
  current: string | undefined,
): string {
  const tags = Map.groupBy(entries, ({ tag, event }) => (event === undefined ? tag : 'events'));
  const events = tags.get('events') ?? [];
  tags.delete('events');
  const [guided, manual] = [true, false].map((isGuide) =>
    guides.filter(({ path }) => path.startsWith('guides/') === isGuide),
  ) as [GuidePage[], GuidePage[]];
  const isInManual = manual.some(({ path }) => path === current);
  return `<label for="search">Search <kbd>/</kbd></label><input id="search" type="search" autocomplete="off" spellcheck="false">
<p id="found" role="status"></p>
<ul id="sections"></ul>
<details open><summary>Guides</summary>${guideList(guided, current)}</details>
<details${isInManual ? ' open' : ''}><summary>Manual</summary>${guideList(manual, current)}</details>
${[...tags].map(([tag, inTag]) => groupHtml(`tag-${tag}`, tag.replaceAll('_', ' '), inTag)).join('\n')}
${groupHtml('tag-events', `Events (${events.length})`, events)}`;
}

/** A section of a guide, for the search. `href`: of its heading. */
interface Section {
  readonly href: string;
  readonly title: string;
  readonly text: string;
}

/** The sections of a guide that is HTML, with the text below their headings. */
export function sectionsOf({ path, title: guide, html }: GuidePage): Section[] {
  return html.split(/(?=<h[1-6] id=)/).flatMap((part) => {
    const [, id, heading = ''] = /^<h[1-6] id="([^"]*)">(.*?)<\/h/s.exec(part) ?? [];
    if (id === undefined) return [];
    const title = textOf(heading);
    return [
      {
        href: `/docs/${path}#${id}`,
        title: title === guide ? guide : `${guide}: ${title}`,
        text: textOf(part.slice(part.indexOf('</h'))),
      },
    ];
  });
}

/** HTML as text, with its entities as characters. */
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

function guideList(guides: readonly GuidePage[], current: string | undefined): string {
  const items = guides.map(({ path, title }) => {
    const mark = path === current ? ' aria-current="page"' : '';
    return `<li><a href="/docs/${path}"${mark}>${escapeHtml(title)}</a></li>`;
  });
  return `<ul>${items.join('')}</ul>`;
}

function groupHtml(id: string, title: string, entries: readonly ReferenceEntry[]): string {
  const items = entries.map((entry) => {
    const { tag, summary, method, path, event } = entry;
    const text = escapeHtml([entry.id, method, path ?? event, summary].join(' '));
    const label = event ?? `<span class="method">${method}</span>${escapeHtml(summary)}`;
    return `<li data-text="${text}"><a href="/docs#/${tag}/${entry.id}">${label}</a></li>`;
  });
  return `<details id="${id}"><summary>${escapeHtml(title)}</summary><ul>${items.join('')}</ul></details>`;
}

/** A guide in which `POST /v1/wallets` and the like lead to the operation. */
export function withOperationLinks(html: string, entries: Iterable<ReferenceEntry>): string {
  const links = new Map(
    [...entries].map(({ method, path, tag, id }) => [`${method} ${path}`, `/docs#/${tag}/${id}`]),
  );
  return html.replaceAll(/<code>([A-Z]+ \/[^<]*)<\/code>/g, (code: string, text: string) => {
    const link = links.get(text);
    return link === undefined ? code : `<a href="${link}">${code}</a>`;
  });
}

/** What `/docs` shows before an operation is chosen. */
export function introductionHtml({ info, tags }: ReferenceDocument, guides: readonly GuidePage[]): string {
  const first = guides[0];
  const start =
    first === undefined
      ? ''
      : `<p>New here? <a href="/docs/${first.path}">${escapeHtml(first.title)}</a>.</p>`;
  const items = tags.map(
    ({ name, description = '' }) =>
      `<dt><a href="#/${name}">${name.replaceAll('_', ' ')}</a></dt><dd>${proseHtml(description)}</dd>`,
  );
  return `<h1>Reference</h1>
<p>${proseHtml(info.description)}</p>
${start}
<dl>${items.join('\n')}</dl>`;
}

/** Backticks mark code. */
function proseHtml(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>');
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
