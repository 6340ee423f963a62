import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Page } from './reference-pages.ts';

const LEAST_BYTES = 1_024;

// RFC 9110 section 12.5.3: a weight of 0 refuses.
const acceptsGzip = /\bgzip\b(?! *; *q=0(?:\.0*)?(?![.\d]))/;

const compress = promisify(gzip);
const kept = new WeakMap<Page, Promise<Buffer>>();

/** The content of a page for a client, and the headers that go with it. Each page is compressed once. */
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
