import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createBrand } from '../../../src/http/brand.ts';
import { createReferencePages } from '../../../src/http/pages/reference-pages.ts';
import { packageRoot } from '../../../src/package-root.ts';

const find = createReferencePages(packageRoot(), undefined);

test('the document is the bundled one, on the server that it is read from', () => {
  const page = find('/openapi.json')!;
  const bundled = JSON.parse(readFileSync('openapi/openapi.json', 'utf8'));
  expect(page.contentType).toBe('application/json; charset=utf-8');
  expect(JSON.parse(page.content.toString())).toEqual({ ...bundled, servers: [{ url: '/' }] });
});

test('the document of a brand contains the brand', () => {
  const page = createReferencePages(packageRoot(), createBrand('acme'))('/openapi.json')!;
  expect(page.content.toString()).toContain('"name":"acme-app-id"');
});

test('a page is built once', () => {
  expect(find('/docs')).toBe(find('/docs'));
});

describe('the reference loads nothing from other hosts', () => {
  const html = find('/docs')!.content.toString();

  test('every file that the page references is served by this server', () => {
    const named = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(named.length).toBeGreaterThan(3);
    for (const path of named) expect(find(path)?.content.length, path).toBeGreaterThan(0);
  });

  test('the content security policy blocks other hosts', () => {
    expect(find('/docs')?.headers?.['content-security-policy']?.split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  test('the style sheet loads nothing over the network', () => {
    const loaded = [
      ...find('/docs/swagger-ui.css')!
        .content.toString()
        .matchAll(/url\(["']?([^"')]{1,40})|@import/g),
    ];
    expect(loaded.filter((match) => !match[1]?.startsWith('data:'))).toEqual([]);
  });
});

test.each(['/', '/docs/x', '/docs/../package.json', '/docs/__proto__', '/docs/toString', '/openapi'])(
  '%s is not a page',
  (path) => {
    expect(find(path)).toBeUndefined();
  },
);
