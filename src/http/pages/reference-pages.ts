import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Brand } from '../brand.ts';
import type { Caller } from '../origins/local-caller.ts';
import { brandDocument } from './brand-document.ts';

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

// With this policy the browser blocks any request of the reference to another host.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const assets: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Custos: reference</title>
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<noscript>The reference is drawn by a script. The document itself is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** What the reference of one server has of its own. */
export interface ReferenceOptions {
  /** Returns the document with the server's own examples. */
  readonly tailor?: (document: ReferenceDocument) => ReferenceDocument;
  /** Credentials that the page fills in. Every client of the server can read them. */
  readonly credentials?: { readonly appId: string; readonly appSecret: string } | undefined;
}

/** The part of the document that `tailor` may change. */
export interface ReferenceDocument {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly parameters?: readonly object[] }>>>
  >;
  readonly components: { readonly parameters: Readonly<Record<string, object>> };
}

const SCHEME = 'appCredentials';

// `validatorUrl: null`: by default the page loads a badge from a validator on the internet.
const startScript = ({ credentials }: ReferenceOptions): string => `window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
  onComplete: () => ${credentials === undefined ? '{}' : `window.ui.preauthorizeBasic(${[SCHEME, credentials.appId, credentials.appSecret].map((text) => JSON.stringify(text)).join(', ')})`},
});
`;

/** The contract at `/openapi.json` and its reference at `/docs`, built on first request and cached. */
export function createReferencePages(
  packageRoot: string,
  brand: Brand | undefined,
  options: ReferenceOptions = {},
): FindPage {
  const kept = new Map<string, Page>();
  return (path) => {
    const known = kept.get(path);
    if (known !== undefined) return known;
    const page = makePage(path, { packageRoot, brand, ...options });
    if (page !== undefined) kept.set(path, page);
    return page;
  };
}

interface Source extends ReferenceOptions {
  readonly packageRoot: string;
  readonly brand: Brand | undefined;
}

function makePage(path: string, source: Source): Page | undefined {
  if (path === '/openapi.json') return documentPage(source);
  if (path === '/docs' || path === '/docs/') {
    const headers = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' };
    return { contentType: 'text/html; charset=utf-8', content: Buffer.from(html), headers };
  }
  if (path === '/docs/start.js') {
    return { contentType: 'text/javascript; charset=utf-8', content: Buffer.from(startScript(source)) };
  }
  const name = path.startsWith('/docs/') ? path.slice('/docs/'.length) : '';
  const contentType = Object.hasOwn(assets, name) ? assets[name] : undefined;
  return contentType === undefined
    ? undefined
    : { contentType, content: readFileSync(assetPath(name, source)) };
}

/** The bundled document. `servers` is this server, so that requests can be tried out in the reference. */
function documentPage({ packageRoot, brand, tailor }: Source): Page {
  const text = readFileSync(join(packageRoot, 'openapi', 'openapi.json'), 'utf8');
  const whole = { ...JSON.parse(text), servers: [{ url: '/' }] };
  const document = tailor === undefined ? whole : tailor(whole);
  const branded = brand === undefined ? document : brandDocument(document, brand);
  return { contentType: 'application/json; charset=utf-8', content: Buffer.from(JSON.stringify(branded)) };
}

/** The build copies the assets, because the published package does not depend on theirs. */
function assetPath(name: string, { packageRoot }: Source): string {
  const built = join(packageRoot, 'dist', 'swagger-ui', name);
  return existsSync(built) ? built : createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`);
}
