import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { loadOnce } from '../engine/load-once.ts';
import type { Brand } from './brand.ts';
import {
  docsHtml,
  escapeHtml,
  guideHtml,
  introductionHtml,
  type Navigation,
  searchEntries,
} from './docs-html.ts';
import type { Caller } from './origins.ts';
import {
  brandDocument,
  listReference,
  type ReferenceDocument,
  type ReferenceEntry,
  sliceOf,
} from './reference-document.ts';

/** A static page. */
export interface Page {
  /** Default: 200. */
  readonly status?: number;
  readonly contentType: string;
  readonly content: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws for callers who must not see the page. Default: everyone may. */
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

/** What differs between the references of servers. */
export interface ReferenceOptions {
  /** Returns the document with examples from this server. */
  readonly tailor?: (document: ReferenceDocument) => ReferenceDocument;
  /** Credentials that the page fills in. They are visible to every client of the server. */
  readonly credentials?: { readonly appId: string; readonly appSecret: string } | undefined;
  /** The file of the certificate authority that clients must trust. */
  readonly caFile?: string;
  /** Published private keys with which the page can sign: PKCS#8 in base64. */
  readonly signers?: readonly { readonly name: string; readonly privateKey: string }[];
  /** Texts in the guides, such as an address, and their replacements on this server. Called once the server listens. */
  readonly readTexts?: () => ReadonlyMap<string, string>;
  /** Ids of existing resources, keyed by parameter name. */
  readonly readIds?: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Replaces the sample addresses and names in a guide with those of this server, so that readers can paste the commands.
 */
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
 * Returns a function that finds the API document at `/openapi.json`, and its reference and the guides at `/docs`. Pages
 * are built on their first request and cached.
 */
export function createReferencePages(
  packageRoot: string,
  brand: Brand | undefined,
  options: ReferenceOptions = {},
): FindReferencePage {
  const source = { packageRoot, brand, ...options };
  // INVARIANT: the cache is bounded, because only the paths of existing pages are keys.
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
  const { guidePages: guides, docsFiles } = await import('../generated/pages.ts');
  const document = readDocument(source);
  const entries = listReference(document);
  const navigation: Navigation = { entries, guides };
  const own = source.readTexts?.() ?? noTexts;
  const text = (words: string): string => withOwnTexts(source.brand?.writeText(words) ?? words, own);
  return (path) => {
    if (path === '/openapi.json') return pageOf(json, JSON.stringify(document));
    if (path === '/docs' || path === '/docs/') {
      const main = introductionHtml(document, navigation);
      return pageOf(
        html,
        docsHtml({ ...navigation, title: 'Reference', main, page: 'reference' }),
        headersOfHtml,
      );
    }
    if (path === '/docs/search.json') return pageOf(json, JSON.stringify(searchEntries(navigation, text)));
    const file = docsFiles.find(({ name }) => path === `/docs/${name}`);
    if (file !== undefined) return pageOf(typeOf(file.name), file.text);
    const entry = operationAt(path, entries);
    if (entry !== undefined) return pageOf(json, JSON.stringify(sliceOf(document, entry)));
    const guide = guides.find((each) => path === `/docs/${each.path}`);
    if (guide === undefined) return undefined;
    const main = guideHtml(guide, text(guide.html), navigation);
    const shell = { ...navigation, title: guide.title, main, page: 'guide', current: guide.path } as const;
    return pageOf(html, docsHtml(shell), headersOfHtml);
  };
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

function typeOf(name: string): string {
  return types[extname(name)] ?? 'application/octet-stream';
}

function operationAt(path: string, entries: ReadonlyMap<string, ReferenceEntry>): ReferenceEntry | undefined {
  const id = /^\/docs\/operations\/(\w+)\.json$/.exec(path)?.[1];
  return id === undefined ? undefined : entries.get(id);
}

/** Reads the API document. Its `servers` contains this server, so that readers can try out requests. */
function readDocument({ packageRoot, brand, tailor }: Source): ReferenceDocument {
  const text = readFileSync(join(packageRoot, 'openapi', 'openapi.json'), 'utf8');
  const whole = { ...JSON.parse(text), servers: [{ url: '/' }] };
  const document = tailor === undefined ? whole : tailor(whole);
  return brand === undefined ? document : (brandDocument(document, brand) as ReferenceDocument);
}

async function settingsPage({ brand, credentials, caFile, signers = [], readIds }: Source): Promise<Page> {
  const prefix = brand?.prefix ?? 'service';
  const ids = (await readIds?.()) ?? {};
  const settings = {
    prefix,
    credentials,
    caFile,
    signers,
    ids: brand === undefined ? ids : brand.writeBody(ids),
  };
  return pageOf(json, JSON.stringify(settings), { 'cache-control': 'no-store' });
}

function pageOf(contentType: string, text: string, headers: Readonly<Record<string, string>> = {}): Page {
  return { contentType, content: Buffer.from(text), headers };
}

const MIN_BYTES = 1_024;

// RFC 9110 section 12.5.3: a weight of 0 means "not acceptable".
const acceptsGzip = /\bgzip\b(?! *; *q=0(?:\.0*)?(?![.\d]))/;

const compress = promisify(gzip);
const kept = new WeakMap<Page, Promise<Buffer>>();

/** Returns the content of a page for a client, and its headers. Each page is compressed once. */
export async function compressed(
  page: Page,
  acceptEncoding: string | undefined,
): Promise<{ content: Buffer; headers: Record<string, string> }> {
  if (page.content.length < MIN_BYTES) return { content: page.content, headers: {} };
  const headers = { vary: 'accept-encoding' };
  if (acceptEncoding === undefined || !acceptsGzip.test(acceptEncoding)) {
    return { content: page.content, headers };
  }
  const compressing = kept.get(page) ?? compress(page.content);
  kept.set(page, compressing);
  return { content: await compressing, headers: { ...headers, 'content-encoding': 'gzip' } };
}
