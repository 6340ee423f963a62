import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadOnce } from '../../load-once.ts';
import type { Brand } from '../brand.ts';
import type { Caller } from '../origins/local-caller.ts';
import { brandDocument } from './brand-document.ts';
import {
  contentsHtml,
  docsHtml,
  escapeHtml,
  introductionHtml,
  sectionsOf,
  withOperationLinks,
} from './docs-html.ts';
import { listReference, type ReferenceDocument, type ReferenceEntry, sliceOf } from './reference-document.ts';

/** A static page. */
export interface Page {
  /** Default: 200. */
  readonly status?: number;
  readonly contentType: string;
  readonly content: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws for callers that must not see the page. */
  readonly admit?: ((caller: Caller) => void) | undefined;
}

/** The page at a path, if any. */
export type FindPage = (path: string) => Page | undefined;

/** The page of the reference at a path, if any. */
export type FindReferencePage = (path: string) => Promise<Page | undefined>;

const html = 'text/html; charset=utf-8';
const json = 'application/json; charset=utf-8';

// With this policy the browser runs no script and no style but those of this server, and calls no other host.
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

/** What the reference of one server has of its own. */
export interface ReferenceOptions {
  /** Returns the document with the server's own examples. */
  readonly tailor?: (document: ReferenceDocument) => ReferenceDocument;
  /** Credentials that the page fills in. Every client of the server can read them. */
  readonly credentials?: { readonly appId: string; readonly appSecret: string } | undefined;
  /** Private keys that are published, with which the page can sign: PKCS#8 in base64. */
  readonly signers?: readonly { readonly name: string; readonly privateKey: string }[];
  /** Texts in the guides, such as an address, and what stands for them on this server. Called once it listens. */
  readonly readTexts?: () => ReadonlyMap<string, string>;
  /** Ids of resources that exist now, by the name of the parameter. */
  readonly readIds?: () => Promise<Readonly<Record<string, string>>>;
}

/** A guide, which is HTML, with this server's own texts, so that its commands can be pasted. */
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

/** Whether a path may be a page of the reference. */
export function isReferencePath(path: string): boolean {
  return path === '/openapi.json' || path === '/docs' || path.startsWith('/docs/');
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
  // INVARIANT: bounded, because only paths of pages are kept.
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
  const { guidePages, docsScript, docsStyle } = await import('../../generated/pages.ts');
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
