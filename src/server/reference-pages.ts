import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { loadOnce } from '../engine/load-once.ts';
import type { GuidePage } from '../generated/pages.ts';
import type { Brand } from './brand.ts';
import type { Caller } from './origins.ts';
import {
  brandDocument,
  listReference,
  type ReferenceDocument,
  type ReferenceEntry,
  sliceOf,
} from './reference-document.ts';

/** The parts of every page of /docs. */
interface Shell {
  readonly title: string;
  /** The HTML of the navigation. */
  readonly contents: string;
  /** HTML. */
  readonly main: string;
  readonly page: 'reference' | 'guide';
}

/** A whole page. The navigation works without the script, which adds search and the pages of operations. */
function docsHtml({ title, contents, main, page }: Shell): string {
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

/** The navigation: guides without those of single errors, operations by tag, and events. `current`: the path of the guide that is shown. */
function contentsHtml(
  entries: Iterable<ReferenceEntry>,
  guides: readonly GuidePage[],
  current: string | undefined,
): string {
  const tags = Map.groupBy(entries, ({ tag, event }) => (event === undefined ? tag : 'events'));
  const events = tags.get('events') ?? [];
  tags.delete('events');
  const [guided, manual] = [true, false].map((isGuide) =>
    guides.filter(({ path }) => path.startsWith('guides/') === isGuide && !path.startsWith('errors/')),
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

/** The sections of a guide in HTML, with the text below their headings. */
function sectionsOf({ path, title: guide, html }: GuidePage): Section[] {
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

/** Links each mention of an operation in a guide, such as `POST /v1/wallets`, to its page. */
function withOperationLinks(html: string, entries: Iterable<ReferenceEntry>): string {
  const links = new Map(
    [...entries].map(({ method, path, tag, id }) => [`${method} ${path}`, `/docs#/${tag}/${id}`]),
  );
  return html.replaceAll(/<code>([A-Z]+ \/[^<]*)<\/code>/g, (code: string, text: string) => {
    const link = links.get(text);
    return link === undefined ? code : `<a href="${link}">${code}</a>`;
  });
}

/** The content of `/docs` before an operation is chosen. */
function introductionHtml({ info, tags }: ReferenceDocument, guides: readonly GuidePage[]): string {
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

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A static page. */
export interface Page {
  /** Default: 200. */
  readonly status?: number;
  readonly contentType: string;
  readonly content: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws for callers who must not see the page. */
  readonly admit?: ((caller: Caller) => void) | undefined;
}

export type FindPage = (path: string) => Page | undefined;

export type FindReferencePage = (path: string) => Promise<Page | undefined>;

const html = 'text/html; charset=utf-8';
const json = 'application/json; charset=utf-8';

// With this policy, the browser runs only scripts and styles of this server, and connects to no other host.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headersOfHtml = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' };

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1a469f"/><path d="M22 11.5a7 7 0 1 0 0 9" fill="none" stroke="#fff" stroke-width="4"/></svg>`;

/** The parts of the reference that differ between servers. */
export interface ReferenceOptions {
  /** Returns the document with the server's own examples. */
  readonly tailor?: (document: ReferenceDocument) => ReferenceDocument;
  /** Credentials that the page fills in. They are visible to every client of the server. */
  readonly credentials?: { readonly appId: string; readonly appSecret: string } | undefined;
  /** Published private keys with which the page can sign: PKCS#8 in base64. */
  readonly signers?: readonly { readonly name: string; readonly privateKey: string }[];
  /** Texts in the guides, such as an address, and their replacements on this server. Called once the server listens. */
  readonly readTexts?: () => ReadonlyMap<string, string>;
  /** Ids of existing resources, keyed by parameter name. */
  readonly readIds?: () => Promise<Readonly<Record<string, string>>>;
}

/** Fills the addresses and names of this server into a guide in HTML, so that readers can paste the commands. */
function withOwnTexts(html: string, texts: ReadonlyMap<string, string>): string {
  let own = html;
  for (const [written, text] of texts) own = own.replaceAll(written, () => escapeHtml(text));
  return own;
}

const noTexts: ReadonlyMap<string, string> = new Map();

interface Source extends ReferenceOptions {
  readonly packageRoot: string;
  readonly brand: Brand | undefined;
}

/**
 * The contract at `/openapi.json`, its reference and the guides at `/docs`. Pages are built on first request and
 * cached.
 */
export function createReferencePages(
  packageRoot: string,
  brand: Brand | undefined,
  options: ReferenceOptions = {},
): FindReferencePage {
  const source = { packageRoot, brand, ...options };
  // INVARIANT: the cache is bounded, because only paths of pages are keys.
  const kept = new Map<string, Page>();
  const read = loadOnce(() => readSource(source));
  return async (path) => {
    if (path === '/docs/settings.json') return settingsPage(source);
    const known = kept.get(path);
    if (known !== undefined) return known;
    const page = (await read())(path);
    if (page !== undefined) kept.set(path, page);
    return page;
  };
}

type MakePage = (path: string) => Page | undefined;

async function readSource(source: Source): Promise<MakePage> {
  const { guidePages, docsScript, docsStyle } = await import('../generated/pages.ts');
  const document = readDocument(source);
  const entries = listReference(document);
  const own = source.readTexts?.() ?? noTexts;
  const text = (words: string): string => withOwnTexts(source.brand?.writeText(words) ?? words, own);
  const shown = (shell: Omit<Parameters<typeof docsHtml>[0], 'contents'>, current?: string) =>
    pageOf(
      html,
      docsHtml({ ...shell, contents: contentsHtml(entries.values(), guidePages, current) }),
      headersOfHtml,
    );
  return (path) => {
    if (path === '/openapi.json') return pageOf(json, JSON.stringify(document));
    if (path === '/docs' || path === '/docs/') {
      const main = introductionHtml(document, guidePages);
      return shown({ title: 'Reference', main, page: 'reference' });
    }
    if (path === '/docs/docs.js') return pageOf('text/javascript; charset=utf-8', docsScript);
    if (path === '/docs/docs.css') return pageOf('text/css; charset=utf-8', docsStyle);
    if (path === '/docs/search.json') {
      const sections = guidePages.flatMap((guide) => sectionsOf({ ...guide, html: text(guide.html) }));
      return pageOf(json, JSON.stringify(sections));
    }
    if (path === '/docs/icon.svg') return pageOf('image/svg+xml', icon);
    const entry = operationAt(path, entries);
    if (entry !== undefined) return pageOf(json, JSON.stringify(sliceOf(document, entry)));
    const guide = guidePages.find((each) => path === `/docs/${each.path}`);
    if (guide === undefined) return undefined;
    const main = withOperationLinks(text(guide.html), entries.values());
    return shown({ title: guide.title, main, page: 'guide' }, guide.path);
  };
}

function operationAt(path: string, entries: ReadonlyMap<string, ReferenceEntry>): ReferenceEntry | undefined {
  const id = /^\/docs\/operations\/(\w+)\.json$/.exec(path)?.[1];
  return id === undefined ? undefined : entries.get(id);
}

/** The bundled document. `servers` is this server, so that requests can be tried out in the reference. */
function readDocument({ packageRoot, brand, tailor }: Source): ReferenceDocument {
  const text = readFileSync(join(packageRoot, 'openapi', 'openapi.json'), 'utf8');
  const whole = { ...JSON.parse(text), servers: [{ url: '/' }] };
  const document = tailor === undefined ? whole : tailor(whole);
  return brand === undefined ? document : (brandDocument(document, brand) as ReferenceDocument);
}

async function settingsPage({ brand, credentials, signers = [], readIds }: Source): Promise<Page> {
  const prefix = brand?.prefix ?? 'service';
  const ids = (await readIds?.()) ?? {};
  const settings = { prefix, credentials, signers, ids: brand === undefined ? ids : brand.writeBody(ids) };
  return pageOf(json, JSON.stringify(settings), { 'cache-control': 'no-store' });
}

function pageOf(contentType: string, text: string, headers: Readonly<Record<string, string>> = {}): Page {
  return { contentType, content: Buffer.from(text), headers };
}

const LEAST_BYTES = 1_024;

// RFC 9110 section 12.5.3: a weight of 0 means "not acceptable".
const acceptsGzip = /\bgzip\b(?! *; *q=0(?:\.0*)?(?![.\d]))/;

const compress = promisify(gzip);
const kept = new WeakMap<Page, Promise<Buffer>>();

/** The content of a page for a client, and its headers. Each page is compressed once. */
export async function compressed(
  page: Page,
  acceptEncoding: string | undefined,
): Promise<{ content: Buffer; headers: Record<string, string> }> {
  if (page.content.length < LEAST_BYTES) return { content: page.content, headers: {} };
  const headers = { vary: 'accept-encoding' };
  if (acceptEncoding === undefined || !acceptsGzip.test(acceptEncoding)) {
    return { content: page.content, headers };
  }
  const compressing = kept.get(page) ?? compress(page.content);
  kept.set(page, compressing);
  return { content: await compressing, headers: { ...headers, 'content-encoding': 'gzip' } };
}
