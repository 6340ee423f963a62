import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { packageRoot } from '../../../src/config/package-root.ts';
import { createBrand } from '../../../src/server/brand.ts';
import { createReferencePages, type Page } from '../../../src/server/reference-pages.ts';

const find = createReferencePages(packageRoot(), undefined);

async function pageAt(path: string): Promise<Page> {
  const page = await find(path);
  if (page === undefined) throw new Error(`there is no page at \`${path}\``);
  return page;
}

const textAt = async (path: string): Promise<string> => (await pageAt(path)).content.toString();

interface Bundled {
  readonly paths: Record<string, Record<string, { operationId: string; tags: string[]; summary: string }>>;
  readonly webhooks: Bundled['paths'];
}

const bundled = JSON.parse(readFileSync('openapi/openapi.json', 'utf8')) as Bundled;
const documented = [bundled.paths, bundled.webhooks].flatMap((items) =>
  Object.values(items).flatMap((methods) => Object.values(methods)),
);

test('the document is the bundled one, on the server that it is read from', async () => {
  const page = await pageAt('/openapi.json');
  expect(page.contentType).toBe('application/json; charset=utf-8');
  expect(JSON.parse(page.content.toString())).toEqual({ ...bundled, servers: [{ url: '/' }] });
});

test('the document, the operations and the guides of a brand contain the brand', async () => {
  const findOfBrand = createReferencePages(packageRoot(), createBrand('acme'));
  expect((await findOfBrand('/openapi.json'))?.content.toString()).toContain('"name":"acme-app-id"');
  const operation = (await findOfBrand('/docs/operations/walletRpc.json'))?.content.toString();
  expect(operation).toContain('"name":"acme-app-id"');
  const guide = (await findOfBrand('/docs/guides/first-request'))?.content.toString();
  expect(guide).toContain('acme-authorization-signature');
  expect(JSON.parse((await findOfBrand('/docs/settings.json'))!.content.toString())).toEqual({
    prefix: 'acme',
    signers: [],
    ids: {},
  });
});

test('a page is built once', async () => {
  expect(await find('/docs')).toBe(await find('/docs'));
});

test('the list has a link to every operation and every event', async () => {
  const links = new Set(
    [...(await textAt('/docs')).matchAll(/href="\/docs#([^"]+)"/g)].map(([, link]) => link),
  );
  const wanted = documented.map(({ operationId, tags }) => `/${tags[0]}/${operationId}`);
  const subjects = documented.map(({ tags }) => `/${tags[0]}`);
  expect(new Set([...wanted, ...subjects])).toEqual(links);
});

test('each operation can be read by itself: every reference in it is resolved', async () => {
  for (const { operationId, summary } of documented) {
    const text = await textAt(`/docs/operations/${operationId}.json`);
    const slice = JSON.parse(text) as { id: string; summary: string; schemas: object; parameters: object[] };
    expect([slice.id, slice.summary]).toEqual([operationId, summary]);
    expect(slice.parameters.filter((parameter) => !('schema' in parameter))).toEqual([]);
    const named = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in slice.schemas))).toEqual([]);
  }
});

test('the first page and the largest operation are small over the wire', async () => {
  const bytes = async (...paths: string[]): Promise<number> =>
    (await Promise.all(paths.map(pageAt))).reduce((sum, { content }) => sum + gzipSync(content).length, 0);
  const scripts = [...(await textAt('/docs')).matchAll(/<script[^>]* src="([^"]+)"/g)].map(
    ([, path = '']) => path,
  );
  expect(scripts.length).toBeGreaterThan(0);
  expect(await bytes('/docs', '/docs/docs.css', ...scripts)).toBeLessThan(40_000);
  expect(await bytes('/docs/operations/walletRpc.json')).toBeLessThan(40_000);
});

describe('the pages load nothing from other hosts', () => {
  test.each(['/docs', '/docs/guides/first-request', '/docs/signing'])(
    'the pages load nothing from other hosts: %s',
    async (path) => {
      const html = await textAt(path);
      const named = [...html.matchAll(/<(?:link|script)[^>]* (?:src|href)="([^"]+)"/g)].map(
        ([, file = '']) => file,
      );
      expect(named.length).toBe(3);
      for (const file of named) expect((await pageAt(file)).content.length, file).toBeGreaterThan(0);
      // The policy forbids them.
      expect(html).not.toMatch(/<style|\sstyle=|<script>|\son\w+=/);
    },
  );

  test('the content security policy allows files of this server only', async () => {
    expect((await pageAt('/docs')).headers?.['content-security-policy']?.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  test('the style sheet loads nothing', async () => {
    expect(await textAt('/docs/docs.css')).not.toMatch(/url\(|@import/);
  });
});

test('operations that guides name lead to their page', async () => {
  const guide = await textAt('/docs/signing');
  expect(guide).toContain(
    '<a href="/docs#/wallets/authenticateWallets"><code>POST /v1/wallets/authenticate</code></a>',
  );
  const named = (await textAt('/docs/guides/webhooks')).match(/<a href="\/docs#[^"]*"><code>/g);
  expect(named?.length).toBeGreaterThan(0);
});

test('links between the pages lead to pages and headings', async () => {
  const paths = [...(await textAt('/docs')).matchAll(/href="(\/docs\/[\w/-]+)"/g)].map(
    ([, path = '']) => path,
  );
  expect(paths.length).toBeGreaterThan(8);
  for (const path of new Set(paths)) {
    const html = await textAt(path);
    for (const [, target = '', anchor] of html.matchAll(/href="(\/[^"#]*)(?:#([^"/]+))?"/g)) {
      const linked = await textAt(target);
      if (anchor !== undefined) expect(linked, `${path} -> ${target}`).toContain(`id="${anchor}"`);
    }
  }
});

test.each([
  '/docs/x',
  '/docs/../package.json',
  '/docs/__proto__',
  '/docs/operations/toString.json',
  '/docs/README',
])('%s is not a page', async (path) => {
  expect(await find(path)).toBeUndefined();
});
