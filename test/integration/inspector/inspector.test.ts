import { gzipSync } from 'node:zlib';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleInspector } from '../../../codegen/inspector.ts';
import { builtInspector } from '../../support/inspector/built-inspector.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const MAX_FIRST_LOAD_BYTES = 40_000;

let built: Awaited<ReturnType<typeof builtInspector>>;
let sandbox: TestSandbox;
beforeAll(async () => {
  built = await builtInspector();
  sandbox = await startSandbox({ inspectorFolder: built.folder });
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  built[Symbol.dispose]();
});

async function get(path: string, headers: Record<string, string> = {}, on = sandbox) {
  const answer = await on.dispatcher.request({ origin: on.baseUrl, path, method: 'GET', headers });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

test('the first page loads at most 40 kB, in a file for each connection of a browser', async () => {
  const { files, firstLoad } = await bundleInspector();
  const sizes = firstLoad.map((path) => {
    const file = files.find((each) => each.path === path);
    if (file === undefined) throw new Error(`${path} is not built`);
    return gzipSync(file.contents).length;
  });
  expect(firstLoad.length).toBeGreaterThanOrEqual(4);
  expect(firstLoad.length).toBeLessThanOrEqual(6);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MAX_FIRST_LOAD_BYTES);
});

test('the sandbox serves the inspector, which loads nothing from elsewhere and runs no inline script', async () => {
  const start = await get('/');
  expect(start).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
  const policy = String(start.headers['content-security-policy']);
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain('unsafe');
  expect(policy).not.toMatch(/https?:/);
  expect(start.text).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=|https?:/);
  const loaded = [...start.text.matchAll(/(?:src|href)="(\/inspector\/[^"]+)"/g)].map(
    ([, path = '']) => path,
  );
  expect(loaded.length).toBeGreaterThanOrEqual(4);
  for (const path of loaded) {
    const { status, headers } = await get(path, { 'accept-encoding': 'gzip' });
    expect([path, status, headers['cache-control']]).toEqual([
      path,
      200,
      expect.stringContaining('immutable'),
    ]);
    expect(Number(headers['content-length']) < 1024 || headers['content-encoding'] === 'gzip').toBe(true);
  }
  expect((await get('/inspector/none.js')).status).toBe(401);
});

test('pages of other sites and other names of this machine do not see it', async () => {
  const dispatcher = new Agent({ connect: { ca: sandbox.caPem, checkServerIdentity: () => undefined } });
  const ask = { ...sandbox, dispatcher };
  const { host } = new URL(sandbox.baseUrl);
  const statuses: Record<string, number[]> = {};
  for (const path of ['/', '/_sandbox/clock']) {
    statuses[path] = [
      (await get(path, { host }, ask)).status,
      (await get(path, { host: 'evil.example' }, ask)).status,
      (await get(path, { host, origin: 'https://evil.example' }, ask)).status,
    ];
  }
  await dispatcher.close();
  expect(statuses).toEqual({ '/': [200, 404, 404], '/_sandbox/clock': [200, 404, 404] });
});

test('where it is not built, the start page leads to the reference', async () => {
  await using other = await startSandbox({ inspectorFolder: '/nowhere' });
  expect(await get('/', {}, other)).toMatchObject({ status: 302, headers: { location: '/docs' } });
});
